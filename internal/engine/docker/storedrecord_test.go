package docker

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

var record = flag.String("record", "", "write what this engine stores to this file, such as testdata/stored/docker-20.10.24.json")

// recording is what an engine stored of the containers of a workshop. It has no names
// or paths of the machine where it was made.
type recording struct {
	Command, Host, Date string
	Flavour             engine.Flavour
	Version             string
	DefaultRuntime      string
	Containers          map[string]recorded
}

func (r recording) info() engine.Info {
	return engine.Info{Flavour: r.Flavour, DefaultRuntime: r.DefaultRuntime}
}

type recorded struct {
	Config    *container.Config
	Host      *container.HostConfig
	Network   *network.NetworkingConfig
	ImageEnv  []string
	Inspected *container.InspectResponse
}

func (r recorded) sent() *creation {
	return &creation{name: "p-one-1", config: r.Config, host: r.Host, network: r.Network, imageEnv: r.ImageEnv}
}

// What this engine stores of each role's container is what was asked. With -record it
// is written to a file.
func TestStoredByThisEngine(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Ports = []workshop.Port{{Host: value("127.0.0.1"), Published: value(uint16(18080)), Target: value(uint16(8080))}}
		w.Workers[0].Container.Mounts = []workshop.Mount{{Source: value("output"), Target: value("/output"), ReadWrite: true}}
	}, "one")
	if err := os.MkdirAll(filepath.Join(f.dir, "output"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.e.PrepareInit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := f.plan(t)
	p.Steps = slices.DeleteFunc(p.Steps, func(s engine.Step) bool {
		return s.Op == engine.OpStartContainer || s.Op == engine.OpWaitReady || s.Op == engine.OpFillVolume
	})
	for i := range p.Steps {
		p.Steps[i].After = slices.DeleteFunc(p.Steps[i].After, func(id int) bool {
			return !slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.ID == id })
		})
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	info, err := f.e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{e: f.e, p: f.plan(t), ids: map[string]string{"room": f.container(t, "room").ID}}
	out := recording{
		Command: "go test ./internal/engine/docker -run TestStoredByThisEngine -record FILE", Date: time.Now().UTC().Format(time.DateOnly),
		Flavour: info.Flavour, Version: info.Version, DefaultRuntime: info.DefaultRuntime,
		Host: info.Daemon.OperatingSystem + ", cgroup v" + info.Daemon.CgroupVersion, Containers: map[string]recorded{},
	}
	for _, service := range []string{"one", "room", "guard"} {
		sent, err := r.creation(t.Context(), service, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.translated(t.Context(), service, sent); err != nil {
			t.Fatal(err)
		}
		c := f.inspect(t, service)
		for _, d := range stored(sent, &c, info) {
			t.Errorf("%s: %s", service, d)
		}
		out.Containers[service] = recorded{sent.config, sent.host, sent.network, sent.imageEnv, &container.InspectResponse{
			ContainerJSONBase: &container.ContainerJSONBase{Path: c.Path, Args: c.Args, HostConfig: c.HostConfig},
			Config:            c.Config, Mounts: c.Mounts, NetworkSettings: &container.NetworkSettings{Networks: c.NetworkSettings.Networks},
		}}
	}
	if *record == "" {
		return
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := json.Marshal("seccomp=" + string(f.c.Seccomp))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.NewReplacer(string(profile), `"seccomp={}"`, f.dir, "/work/p", f.container(t, "room").ID, "ROOM", f.container(t, "room").ID[:12], "ROOM", info.DataRoot, "/data",
		f.name, "p").Replace(string(text))
	if err := os.WriteFile(*record, []byte(all+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A container that somebody changed after it was made is found when it is started
// again, removed, and made anew by the next up.
func TestStoredIsComparedAgain(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	change := func() {
		t.Helper()
		id := f.container(t, "one").ID
		if err := f.e.cli.ContainerStop(t.Context(), id, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		more := container.Resources{Memory: 128 << 20, MemorySwap: -1}
		if _, err := f.e.cli.ContainerUpdate(t.Context(), id, container.UpdateConfig{Resources: more}); err != nil {
			t.Fatal(err)
		}
	}
	want := "container " + f.name + "-one-1 isn't what was asked of the engine: Memory: asked 67108864, found 134217728; " +
		"MemorySwap: asked 67108864, found -1 (B5): the container is removed; recreate it with `workshop up`"
	for name, plan := range map[string]func() *engine.Plan{
		"up": func() *engine.Plan { return f.plan(t) },
		"restart": func() *engine.Plan {
			p, err := engine.PlanRestart(engine.Desired{Compiled: f.c}, f.observe(t))
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
	} {
		change()
		err := f.e.Apply(t.Context(), plan(), nil)
		refused, ok := errors.AsType[*engine.RefusedError](err)
		if !ok || refused.Error() != want {
			t.Errorf("%s: got %v\nwant %s", name, err, want)
		}
		if _, err := f.e.one(t.Context(), f.name, "one"); err == nil {
			t.Errorf("%s: it is still there", name)
		}
		f.up(t)
		if c := f.container(t, "one"); c.State != "running" {
			t.Errorf("%s: after the next up it is %s", name, c.State)
		}
	}
	// A restart of what an older file asked for has nothing to be compared with.
	f.compile(t, func(w *workshop.Workshop) { w.Workers[0].Container.Resources.Memory = value(workshop.Size(32 << 20)) }, "one")
	p, err := engine.PlanRestart(engine.Desired{Compiled: f.c}, f.observe(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Error(err)
	}
}

// recordings are those of testdata/stored, by name.
func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/stored/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	out := map[string]recording{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recording
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = r
	}
	return out
}

package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// fakeUsed says that an engine may have the stand-in's image.
var fakeUsed atomic.Bool

// fakeInit builds the stand-in once per test binary.
var fakeInit = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "fakeinit")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "fakeinit")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "./testdata/fakeinit")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, b)
	}
	return os.ReadFile(out)
})

// realEngine returns the engine of this machine, with the stand-in.
func realEngine(t testing.TB) *Engine {
	t.Helper()
	fakeUsed.Store(true)
	program, err := fakeInit()
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(t.Context(), Options{Lookup: os.LookupEnv, WithoutLimits: true, CgroupV1: true, Init: testutil.InitSet(program), Compared: engine.Compared{Dir: t.TempDir()},
		ApproveBuild: func(context.Context, Build) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = e.Info(ctx)
	testutil.Require(t, err == nil, fmt.Sprintf("no Docker Engine: %v", err))
	return e
}

// fixture is a workshop on the real engine, with a project name of its own.
type fixture struct {
	e    *Engine
	name string
	dir  string
	c    *compose.Compiled
}

func value[T any](v T) workshop.Value[T] { return workshop.Value[T]{V: v} }

// newFixture compiles a workshop whose workers run the workshop-init image.
func newFixture(t testing.TB, change func(*workshop.Workshop), workers ...string) *fixture {
	t.Helper()
	e := realEngine(t)
	f := &fixture{e: e, name: "wseng-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), dir: t.TempDir()}
	if len(f.name) > 50 {
		f.name = f.name[:50]
	}
	f.compile(t, change, workers...)
	t.Cleanup(func() { f.down(t) })
	f.down(t)
	return f
}

func (f *fixture) compile(t testing.TB, change func(*workshop.Workshop), workers ...string) {
	t.Helper()
	image, volume, err := f.e.InitNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	k := workshop.Container{
		Image: value(image), Pull: value(workshop.PullNever), User: value("1000:1000"), Workdir: value("/workspace"),
		Network: workshop.Network{Mode: value(firewall.Restricted), Allow: []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts()}}},
		Tmp:     value(workshop.Size(16 << 20)), Scratch: value(workshop.Size(16 << 20)), Shm: value(workshop.Size(1 << 20)), Home: value(workshop.Size(16 << 20)),
		Resources: workshop.Resources{Memory: value(workshop.Size(64 << 20)), CPU: value(0.5), PIDs: value(int64(64)), Timeout: value(time.Minute)},
	}
	w := &workshop.Workshop{File: "workshop.yaml", Name: value(f.name), Container: k}
	for _, name := range workers {
		c := k
		c.Env = map[string]workshop.Value[string]{"NAME": value(name)}
		w.Workers = append(w.Workers, workshop.Worker{Name: name, Container: c})
	}
	if change != nil {
		change(w)
	}
	c, err := compose.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	facts := compose.Facts{
		ProjectDir: f.dir, Arch: runtime.GOARCH, Local: true, UID: 1000, GID: 1000, RuntimeDir: filepath.Join(f.dir, f.name+"-01234567"),
		Sources: map[string]compose.SourceFacts{}, InitImage: image, InitVolume: volume,
	}
	if err := os.MkdirAll(facts.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range compose.DialInPaths(c, facts) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range compose.IdentityFiles(c, facts) {
		if err := os.WriteFile(filepath.Join(facts.RuntimeDir, file.Path), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range w.Workers {
		for _, m := range w.Workers[i].Container.Mounts {
			facts.Sources[m.Source.V] = compose.SourceFacts{Exists: true, Dir: true, Real: filepath.Join(f.dir, m.Source.V), UID: 1000, GID: 1000, Mode: 0o755}
		}
	}
	c, problems := compose.WithFacts(c, facts)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	f.c = c
}

func (f *fixture) observe(t testing.TB) engine.Observed {
	t.Helper()
	o, err := f.e.Observe(t.Context(), f.name, engine.DesiredImages(engine.Desired{Compiled: f.c})...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (f *fixture) plan(t testing.TB, only ...string) *engine.Plan {
	t.Helper()
	p, err := engine.PlanUp(engine.Desired{Compiled: f.c, Only: only}, f.observe(t))
	if err != nil {
		t.Fatal(err)
	}
	p.WaitTimeout = time.Minute
	return p
}

func (f *fixture) up(t testing.TB, only ...string) *engine.Plan {
	t.Helper()
	p := f.plan(t, only...)
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatalf("up: %v\n%s", err, p)
	}
	return p
}

func (f *fixture) down(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	o, err := f.e.Observe(ctx, f.name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.PlanDown(o, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(ctx, p, nil); err != nil {
		t.Fatal(err)
	}
}

// container returns the one container of a service.
func (f *fixture) container(t testing.TB, service string) engine.Container {
	t.Helper()
	c, err := f.e.one(t.Context(), f.name, service)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withoutDoors takes the doors of workers that run away: the stand-in comes to none.
func (f *fixture) withoutDoors(t testing.TB) {
	t.Helper()
	for service, role := range f.c.Roles {
		if role == compose.RoleWorker {
			w, err := f.e.look(t.Context(), f.name, service)
			if err != nil || w.dialIn == "" {
				t.Fatalf("%s: %+v, %v", service, w, err)
			}
			if err := os.RemoveAll(w.dialIn); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (f *fixture) inspect(t testing.TB, service string) container.InspectResponse {
	t.Helper()
	c, err := f.e.cli.ContainerInspect(t.Context(), f.container(t, service).ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leftovers lists everything with the project's label.
func (f *fixture) leftovers(t testing.TB) []string {
	t.Helper()
	o := f.observe(t)
	var out []string
	for _, c := range o.Containers {
		out = append(out, "container/"+c.Name)
	}
	for _, n := range o.Networks {
		out = append(out, "network/"+n.Name)
	}
	for _, v := range o.Volumes {
		out = append(out, "volume/"+v.Name)
	}
	return out
}

//go:build linux

package scenario

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// GVisor is the name under which gVisor's runtime is registered.
const GVisor = "workshop-runsc"

// Runsc builds gVisor's runtime, or finds it built.
func Runsc(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../scripts/runsc").Output()
	testutil.Require(t, err == nil, "scripts/runsc failed")
	return strings.TrimSpace(string(out))
}

// NewGVisorEngine is [NewEngine] with gVisor's runtime as [GVisor], and once more under the
// name of each other flag.
func NewGVisorEngine(t *testing.T, program string, flags ...string) *OwnEngine {
	t.Helper()
	runtimes := map[string]any{}
	for _, flag := range append([]string{""}, flags...) {
		name, args := GVisor, []string{"--host-uds=open", "--network=sandbox"}
		if flag != "" {
			name, args = strings.Trim(strings.ReplaceAll(flag, "=", "-"), "-"), append(args, flag)
		}
		runtimes[name] = map[string]any{"path": program, "runtimeArgs": args}
	}
	b, err := json.Marshal(map[string]any{"runtimes": runtimes})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "daemon.json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return NewEngine(t, "--config-file", file)
}

// OnGVisor makes a worker and its room, which are up, anew: the worker on gVisor, the room
// with an outlet beside it, which carries connections to the worker's inbound ports. All
// else is as the project has it.
func (s *Scenario) OnGVisor(worker, room string, inbound ...string) {
	s.Helper()
	if logs := s.TryOnGVisor(GVisor, worker, room, inbound...); !strings.HasSuffix(logs, "READY\n") {
		s.Fatalf("%s: %s", worker, logs)
	}
}

// TryOnGVisor is [Scenario.OnGVisor] for a worker that may fail: it returns its log once it
// is ready or has failed. The runtime is GVisor's under that name.
func (s *Scenario) TryOnGVisor(runtime, worker, room string, inbound ...string) (logs string) {
	s.Helper()
	ctx := context.Background()
	m := s.machine.(*dockerMachine)
	volume := func(name, target string, ro bool) mount.Mount {
		return mount.Mount{Type: mount.TypeVolume, Source: s.Project + "_" + name, Target: target, ReadOnly: ro}
	}
	take := func(service string) (*container.Config, *container.HostConfig) {
		i, err := m.client.ContainerInspect(ctx, s.Inspect(service).ID)
		s.must(err)
		s.must(m.client.ContainerRemove(ctx, i.ID, container.RemoveOptions{Force: true}))
		return i.Config, i.HostConfig
	}
	start := func(service string, c *container.Config, h *container.HostConfig) string {
		made, err := m.client.ContainerCreate(ctx, c, h, nil, nil, s.Project+"-"+service)
		s.must(err)
		s.must(m.client.ContainerStart(ctx, made.ID, container.StartOptions{}))
		return made.ID
	}
	said := func(service string) (logs string) {
		s.Eventually(service+" is ready or failed", func() bool {
			logs = s.Logs(service)
			return strings.Contains(logs, "READY\n") || strings.Contains(logs, "FAILED")
		})
		return logs
	}

	wc, wh := take(worker)
	rc, rh := take(room)
	rc.Entrypoint = append(rc.Entrypoint, "--outlet", "--every-address")
	joined := container.NetworkMode("container:" + start(room, rc, rh))
	said(room)

	labels := map[string]string{"com.docker.compose.project": s.Project, "com.docker.compose.service": "outlet"}
	outlet := []string{"/workshop-init", "outlet", "--socket", "/run/outlet/outlet.sock"}
	for _, port := range inbound {
		outlet = append(outlet, "--inbound", port)
	}
	start("outlet", &container.Config{Image: rc.Image, User: "65531:65531", Labels: labels, Entrypoint: outlet},
		&container.HostConfig{NetworkMode: joined, CapDrop: []string{"ALL"}, ReadonlyRootfs: true, SecurityOpt: rh.SecurityOpt,
			RestartPolicy: container.RestartPolicy{Name: "unless-stopped"}, Runtime: rh.Runtime,
			Mounts: []mount.Mount{volume("outlet", "/run/outlet", false)}})
	said("outlet")

	wc.Hostname, wc.Domainname = "", ""
	wh.Runtime, wh.NetworkMode = runtime, joined
	at := slices.Index(wc.Entrypoint, "--room")
	wc.Entrypoint = slices.Insert(wc.Entrypoint, at+1, "--relay", "/run/outlet/outlet.sock")
	wh.Mounts = append(wh.Mounts, volume("outlet", "/run/outlet", true))
	// gVisor has to read what it executes.
	for i, v := range wh.Mounts {
		if v.Target == filepath.Dir(compose.InitPath) {
			wh.Mounts[i] = volume("readable", v.Target, true)
		}
	}
	wh.Binds = slices.DeleteFunc(wh.Binds, func(b string) bool { return strings.Contains(b, ":"+filepath.Dir(compose.InitPath)) })
	m.readable(s, rc.Image, filepath.Dir(compose.InitPath))
	start(worker, wc, wh)
	return said(worker)
}

// readable makes a volume with workshop-init that everybody may read.
func (m *dockerMachine) readable(s *Scenario, image, dir string) {
	ctx := context.Background()
	c, err := m.client.ContainerCreate(ctx, &container.Config{Image: image}, &container.HostConfig{
		Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: s.Project + "_readable", Target: dir}}}, nil, nil, "")
	s.must(err)
	program, err := os.ReadFile(s.Init())
	s.must(err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	s.must(w.WriteHeader(&tar.Header{Name: filepath.Base(compose.InitPath), Mode: 0o555, Size: int64(len(program))}))
	_, err = w.Write(program)
	s.must(err)
	s.must(w.Close())
	s.must(m.client.CopyToContainer(ctx, c.ID, dir, &b, container.CopyToContainerOptions{}))
	s.must(m.client.ContainerRemove(ctx, c.ID, container.RemoveOptions{}))
}

//go:build linux

package scenario

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/internal/initbin"
	"github.com/llmdo/workshop/internal/probe"
)

// Control runs probes in an ordinary container: the engine's default network,
// capabilities and user. It is the positive control of denials.
func (s *Scenario) Control(probes ...string) []probe.Result {
	s.Helper()
	return s.probe(s.ordinary(), initbin.EntryPoint, probes...)
}

// ordinary returns the ID of the ordinary container, which is started once.
func (s *Scenario) ordinary() string {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.control != "" {
		return s.control
	}
	id, err := s.start(&container.Config{Image: s.initImage(), Cmd: []string{"probe", "serve 127.0.0.1:1"}, Labels: map[string]string{"dev.llmdo.workshop.e2e": "control"}},
		&container.HostConfig{Init: ptr(true), Binds: []string{s.caFile + ":/ca.pem:ro"}})
	if err != nil {
		s.Fatal(err)
	}
	s.control = id
	return id
}

func (l *Lab) closeControl() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.control != "" {
		_ = l.Docker.ContainerRemove(context.Background(), l.control, container.RemoveOptions{Force: true})
	}
}

func (s *Scenario) start(c *container.Config, h *container.HostConfig) (string, error) {
	ctx := context.Background()
	created, err := s.Docker.ContainerCreate(ctx, c, h, nil, nil, "")
	if err != nil {
		return "", err
	}
	return created.ID, s.Docker.ContainerStart(ctx, created.ID, container.StartOptions{})
}

// initImage returns the ID of the workshop-init image, loaded if need be.
func (s *Scenario) initImage() string {
	s.Helper()
	program, err := os.ReadFile(filepath.Join(s.Bin, "workshop-init-linux-"+runtime.GOARCH))
	if err != nil {
		s.Fatal(err)
	}
	i, err := initbin.NewImage(runtime.GOARCH, program)
	if err != nil {
		s.Fatal(err)
	}
	ctx := context.Background()
	for _, id := range []string{i.ID, i.ManifestID} {
		if _, err := s.Docker.ImageInspect(ctx, id); err == nil {
			return id
		}
	}
	r, err := s.Docker.ImageLoad(ctx, strings.NewReader(string(i.Tar)))
	if err != nil {
		s.Fatal(err)
	}
	defer r.Body.Close()
	buf := make([]byte, 4096)
	for {
		if _, err := r.Body.Read(buf); err != nil {
			break
		}
	}
	return i.Ref
}

// Intruder starts a container straight at the engine in a service's network
// namespace, as something that our product can't make: uid 0, and the
// engine's default capabilities unless told otherwise. It ends with the test.
func (s *Scenario) Intruder(service string, h container.HostConfig) (probeIn func(probes ...string) []probe.Result) {
	s.Helper()
	id := s.IntruderID(service, h)
	return func(probes ...string) []probe.Result { s.Helper(); return s.probe(id, initbin.EntryPoint, probes...) }
}

// IntruderID is Intruder for a test that brings a program of its own: see
// [Scenario.ProbeBy].
func (s *Scenario) IntruderID(service string, h container.HostConfig) string {
	s.Helper()
	h.NetworkMode = container.NetworkMode("container:" + s.Inspect(service).ID)
	h.Init = ptr(true)
	h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeTmpfs, Target: "/scratch"})
	id, err := s.start(&container.Config{
		Image: s.initImage(), User: "0:0", Cmd: []string{"probe", "serve 127.0.0.1:0"},
		Labels: map[string]string{"com.docker.compose.project": s.Project, "com.docker.compose.service": "intruder-" + s.Name()},
	}, &h)
	if id != "" {
		s.Cleanup(func() {
			_ = s.Docker.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true})
		})
	}
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// ProbeBy runs probes in a container by a program that is in there, or by
// workshop-init where that is its entry point, if program is empty.
func (s *Scenario) ProbeBy(id, program string, probes ...string) []probe.Result {
	s.Helper()
	if program == "" {
		program = initbin.EntryPoint
	}
	return s.probe(id, program, probes...)
}

// OrdinaryID is the container of [Scenario.Control], for a program of one's own.
func (s *Scenario) OrdinaryID() string { s.Helper(); return s.ordinary() }

func ptr[T any](v T) *T { return &v }

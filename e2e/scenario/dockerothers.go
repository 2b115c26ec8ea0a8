//go:build linux

package scenario

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/probe"
)

// pings lets everybody ping, as Docker's containers do by default (ping_group_range in icmp(7)).
var pings = map[string]string{"net.ipv4.ping_group_range": "0 2147483647"}

// control is an ordinary container: the engine's default network, capabilities
// and user. One serves all tests of the run. It sees this machine's directory of temporary
// files, for a program that a test brings along.
func (m *dockerMachine) control(s *Scenario, program string, probes []string) ([]probe.Result, error) {
	id, err := m.ordinaryID(s)
	if err != nil {
		return nil, err
	}
	if program == "" {
		program = initimage.EntryPoint
	}
	return m.probeIn(id, program, probes)
}

func (m *dockerMachine) ordinaryID(s *Scenario) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ordinary != "" {
		return m.ordinary, nil
	}
	id, err := m.run(s, &container.Config{Cmd: []string{"probe", "serve 127.0.0.1:1"}, Labels: map[string]string{"dev.llmdo.workshop.e2e": "control"}},
		&container.HostConfig{Init: ptr(true), Sysctls: pings, Binds: []string{s.caFile + ":/ca.pem:ro", os.TempDir() + ":" + os.TempDir() + ":ro"}})
	if err == nil {
		m.ordinary = id
	}
	return id, err
}

// run starts a container of the image of workshop-init.
func (m *dockerMachine) run(s *Scenario, c *container.Config, h *container.HostConfig) (id string, err error) {
	if c.Image, err = m.initImage(s); err != nil {
		return "", err
	}
	created, err := m.client.ContainerCreate(context.Background(), c, h, nil, nil, "")
	if err != nil {
		return "", err
	}
	return created.ID, m.client.ContainerStart(context.Background(), created.ID, container.StartOptions{})
}

// initImage returns the ID of the workshop-init image, loaded if need be.
func (m *dockerMachine) initImage(s *Scenario) (string, error) {
	program, err := os.ReadFile(s.Init())
	if err != nil {
		return "", err
	}
	i, err := initimage.NewImage(runtime.GOARCH, program)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	for _, id := range []string{i.ID, i.ManifestID} {
		if _, err := m.client.ImageInspect(ctx, id); err == nil {
			return id, nil
		}
	}
	r, err := m.client.ImageLoad(ctx, bytes.NewReader(i.Tar))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return i.Ref, err
}

// intrude starts a container straight at the engine, once for each intruder.
func (m *dockerMachine) intrude(s *Scenario, i *Intruder, probes []string) ([]probe.Result, error) {
	if i.id == "" {
		h := &container.HostConfig{
			NetworkMode: container.NetworkMode("container:" + s.Inspect(i.Service).ID), Init: ptr(true),
			Mounts: []mount.Mount{{Type: mount.TypeTmpfs, Target: "/scratch"}},
		}
		if i.NoCapabilities {
			h.CapDrop = []string{"ALL"}
		}
		for target, source := range i.Files {
			h.Binds = append(h.Binds, source+":"+target+":ro")
		}
		id, err := m.run(s, &container.Config{User: "0:0", Cmd: []string{"probe", "serve 127.0.0.1:0"}, Labels: map[string]string{
			"com.docker.compose.project": s.Project, "com.docker.compose.service": "intruder-" + filepath.Base(s.Name()),
		}}, h)
		if id != "" {
			s.Cleanup(func() {
				_ = m.client.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true})
			})
		}
		if err != nil {
			return nil, err
		}
		i.id = id
	}
	program := i.Program
	if program == "" {
		program = initimage.EntryPoint
	}
	return m.probeIn(i.id, program, probes)
}

func (m *dockerMachine) probeIn(id, program string, probes []string) ([]probe.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	code, err := m.execIn(ctx, id, append([]string{program, "probe"}, probes...), &out)
	return checked(probes, out.String(), code, err)
}

// hostAddress is the gateway of the guard's network.
func (m *dockerMachine) hostAddress(s *Scenario) string {
	s.Helper()
	i, err := m.client.ContainerInspect(context.Background(), s.Inspect("guard").ID)
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range i.NetworkSettings.Networks {
		if n.Gateway != "" {
			return n.Gateway
		}
	}
	s.Fatal("the guard has no network")
	return ""
}

func (m *dockerMachine) addresses(s *Scenario) (guard, peer string) {
	s.Helper()
	of := func(id string) (string, error) {
		i, err := m.client.ContainerInspect(context.Background(), id)
		if err != nil {
			return "", err
		}
		for _, n := range i.NetworkSettings.Networks {
			if net.ParseIP(n.IPAddress) != nil {
				return n.IPAddress, nil
			}
		}
		return "", fmt.Errorf("container %s has no address", id)
	}
	guard, err := of(s.Inspect("guard").ID)
	if err == nil {
		var id string
		if id, err = m.ordinaryID(s); err == nil {
			peer, err = of(id)
		}
	}
	if err != nil {
		s.Fatal(err)
	}
	return guard, peer
}

func (m *dockerMachine) hasImage(ref string) bool {
	_, err := m.client.ImageInspect(context.Background(), ref)
	return err == nil
}

func (m *dockerMachine) importImage(s *Scenario, ref string, tar []byte) error {
	ctx := context.Background()
	r, err := m.client.ImageImport(ctx, image.ImportSource{Source: bytes.NewReader(tar), SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	s.Cleanup(func() { _, _ = m.client.ImageRemove(ctx, ref, image.RemoveOptions{Force: true}) })
	_, err = io.Copy(io.Discard, r)
	return err
}

// uses lets the programs of a scenario find what the user accepts of podman.
func (m *dockerMachine) uses(s *Scenario) {
	if m.podman == nil {
		return
	}
	if file := settingsOf(m.caller.home, s.Env); file != "" {
		s.must(ownengine.AcceptPodman(file))
	}
}

func ptr[T any](v T) *T { return &v }

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/probe"
	"github.com/llmdo/workshop/internal/threat"
	"github.com/llmdo/workshop/internal/threat/matrix"
)

// intruder builds the program of package intrude, which nothing that is shipped
// brings along, and returns its path inside the scenario's containers.
func intruder(s *scenario.Scenario) (inside, bind string) {
	s.Helper()
	path := filepath.Join(s.Dir, "intruder")
	cmd := exec.Command("go", "build", "-tags", "nethttpomithttp2", "-o", path, "./internal/threat/intruder")
	cmd.Dir, cmd.Env = s.Root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("go build intruder: %v\n%s", err, out)
	}
	s.Chown()
	return "/intruder", path + ":/intruder:ro"
}

// TestMatrix tries the whole matrix of package threat in a compiled room: as
// its worker, and, in containers that the product can't make, as uid 0 and with
// the engine's default capabilities.
func TestMatrix(t *testing.T) {
	s := scenario.New(t, "restricted", "whatever is tried from a room, by whomever in it, no packet arrives, every denial comes at once and is counted")
	program, bind := intruder(s)
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./intruder:"+program, 1))
	s.Up()
	gw := gateway(s)
	host, came := scenario.HostAddress(t, gw)
	m := matrix.New(t, threat.Docker, s.Internet, map[string]string{
		"ca": "/ca.pem", "gateway": gw, "host": host, "guard": address(s, s.Inspect("guard").ID), "peer": address(s, s.OrdinaryID()),
		"guardpid": fmt.Sprint(s.Pid("guard")), "roompid": fmt.Sprint(s.Pid("room")),
	})
	ca := filepath.Join(s.Dir, "ca.pem") + ":/ca.pem:ro"
	ordinary := ordinaryWith(s, bind, ca)
	m.Control(func(lines []string) []probe.Result { return s.ProbeBy(ordinary, program, lines...) })
	for _, who := range threat.Identities {
		id, own := s.Inspect("worker").ID, compose.InitPath
		switch who {
		case threat.Root:
			id, own = s.IntruderID("room", container.HostConfig{CapDrop: []string{"ALL"}, Binds: []string{bind, ca}}), ""
		case threat.Default:
			id, own = s.IntruderID("room", container.HostConfig{Binds: []string{bind, ca}}), ""
		}
		m.Try(who, func(raw bool, lines []string) []probe.Result {
			if raw {
				return s.ProbeBy(id, program, lines...)
			}
			return s.ProbeBy(id, own, lines...)
		}, func() []matrix.Event { return guardEvents(s) })
	}
	if came() != 0 {
		t.Errorf("the host's listener got %d connections", came())
	}
}

// ordinaryWith starts a container on the engine's default network, with its
// default rights, and binds.
func ordinaryWith(s *scenario.Scenario, binds ...string) string {
	s.Helper()
	i, err := s.Docker.ContainerInspect(context.Background(), s.OrdinaryID())
	if err != nil {
		s.Fatal(err)
	}
	c, err := s.Docker.ContainerCreate(context.Background(),
		&container.Config{Image: i.Image, Cmd: []string{"probe", "serve 127.0.0.1:1"}, Labels: map[string]string{"com.docker.compose.project": s.Project}},
		&container.HostConfig{Binds: binds}, nil, nil, "")
	if err == nil {
		err = s.Docker.ContainerStart(context.Background(), c.ID, container.StartOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
	return c.ID
}

// address is a container's address on its only network.
func address(s *scenario.Scenario, id string) string {
	s.Helper()
	i, err := s.Docker.ContainerInspect(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range i.NetworkSettings.Networks {
		if net.ParseIP(n.IPAddress) != nil {
			return n.IPAddress
		}
	}
	s.Fatalf("container %s has no address", id)
	return ""
}

func guardEvents(s *scenario.Scenario) (all []matrix.Event) {
	text := func(v any) string { t, _ := v.(string); return t }
	for _, e := range s.Events() {
		count, _ := e["count"].(float64)
		all = append(all, matrix.Event{Kind: text(e["kind"]), Name: text(e["name"]), Address: text(e["address"]), Verdict: text(e["verdict"]), Count: int(count)})
	}
	return all
}

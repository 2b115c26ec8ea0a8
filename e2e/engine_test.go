//go:build linux

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// attacker tries to get out of a worker's network namespace until it is
// stopped, from a process of the host: it goes on when the worker, the room or
// the engine is gone.
func attacker(s *scenario.Scenario) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	pid := strconv.Itoa(s.Pid("worker"))
	var all sync.WaitGroup
	for _, p := range []string{"connect 198.51.100.66:9000", "udp 198.51.100.66:5000", "connect [2001:db8:1::66]:9000"} {
		// the namespace is entered while it surely exists, and once
		cmd := enterNet(ctx, pid, s.Bin, p+" for=100s limit=500ms")
		if err := cmd.Start(); err != nil {
			s.Fatal(err)
		}
		all.Go(func() { _ = cmd.Wait() })
	}
	return func() { cancel(); all.Wait() }
}

func TestB21_EngineRestarted(t *testing.T) {
	scenario.OnlyDocker(t, "a daemon that ends and comes back; TestB21_SupervisorKilled is the like for the namespace engine")
	if !scenario.Alone(t) {
		return
	}
	engine := scenario.NewEngine(t)
	s := scenario.New(t, "restricted", "an engine that ends or crashes and comes back opens nothing; after a shutdown the guard returns, room and workers stay down until up")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		s.Up()
		s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
		s.Internet.Reset()
		stop := attacker(s)
		engine.Stop(signal)
		engine.Start()
		if signal == syscall.SIGTERM {
			s.Eventually("the guard runs again", func() bool { return s.Containers()["guard"].State == "running" })
		}
		// After a crash an engine stops what still ran, and Engine 20.10 takes
		// that for a stop by a person: the guard may stay down, which is closed.
		for _, service := range []string{"room", "worker"} {
			if i := s.Inspect(service); i.State == "running" {
				t.Errorf("%v: %s runs after the engine's restart", signal, service)
			}
		}
		if err := s.Start("worker"); err == nil {
			t.Errorf("%v: a worker started without its room", signal)
		}
		if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "workshop up") {
			t.Errorf("%v: exec: exit code %d\n%s", signal, d.Code, d.Err)
		}
		stop()
		silent(s, testnet.Evil)
		s.Up()
		s.Sees("worker", append([]string{"http https://allowed.example.org/ ca=/ca.pem -> 200", "tcp ssh.example.org:22 -> data"}, closedAtOnce...)...)
		silent(s, testnet.Evil)
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}

func TestB21_EngineRestartedBelowLiveContainers(t *testing.T) {
	scenario.OnlyDocker(t, "live-restore is an option of dockerd")
	if !scenario.Alone(t) {
		return
	}
	engine := scenario.NewEngine(t, "--live-restore")
	s := scenario.New(t, "restricted", "under live-restore a workshop goes on while the engine is away, as closed as before")
	s.Up()
	before := s.Containers()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		s.Internet.Reset()
		stop := attacker(s)
		engine.Stop(signal)
		engine.Start()
		s.Sees("worker", append([]string{"http https://allowed.example.org/ ca=/ca.pem -> 200"}, closedAtOnce...)...)
		stop()
		silent(s, testnet.Evil)
		s.Up()
		for service, c := range s.Containers() {
			if c.ID != before[service].ID || c.State != "running" {
				t.Errorf("%v: %s was made anew or is %s", signal, service, c.State)
			}
		}
	}
}

// enterNet is a probe of the host's program in the network namespace of a
// process.
func enterNet(ctx context.Context, pid, bin, probe string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", "--target", pid, "--net", "--", filepath.Join(bin, "workshop-init-linux-"+runtime.GOARCH), "probe", probe)
}

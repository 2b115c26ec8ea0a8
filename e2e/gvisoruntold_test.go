//go:build linux

package e2e

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestGVisorUntold: what is held differently for a worker on gVisor is said: by up when it
// starts, by explain, and where denials are looked for.
func TestGVisorUntold(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return
	}
	scenario.NewGVisorEngine(t, runsc)
	s := scenario.New(t, "restricted", "up, ps, firewall log and explain say what is held differently for a worker on gVisor")
	withOwnKernel(s)
	const held = "worker: the kernel is gVisor's, on which these are held differently: filters of calls (B2), limits of processes (B5), the end of PID 1 (B12), its own network (B22), denials that nobody is told (B28)"
	if d := s.Expect(0, "up"); strings.Count(flat(d.Err), held) != 1 {
		t.Errorf("up says\n%s", d.Err)
	}
	if d := s.Expect(0, "up"); strings.Contains(flat(d.Err), "held differently") {
		t.Errorf("up, which starts nothing, says\n%s", d.Err)
	}
	s.Sees("worker", "tcp "+testnet.Evil+":23 -> "+cutOff, "connect "+testnet.Evil+":9000 -> ECONNREFUSED")
	told := func(port int) bool {
		for _, e := range s.Events() {
			if e["verdict"] == "deny" && e["address"] == testnet.Evil && e["port"] == float64(port) {
				return true
			}
		}
		return false
	}
	s.Eventually("the denial at a relay's port is told", func() bool { return told(23) })
	if told(9000) {
		t.Error("the denial at another port is told, and the documents say that it isn't")
	}
	const untold = "worker: its own kernel refuses ports that no line names, untold but for those of well-known services (B28)"
	for _, args := range [][]string{{"ps"}, {"firewall", "log"}, {"firewall", "log", "--denied", "--worker", "worker"}} {
		if d := s.Expect(0, args...); strings.Count(flat(d.Err), untold) != 1 {
			t.Errorf("%v says\n%s", args, d.Err)
		}
	}
	for target, want := range map[string]string{
		"allowed.example.org":     "hands the connection to the outlet",
		"denied.example.org":      "hands the connection to the outlet",
		testnet.Evil + ":9000":    "refuses tcp port 9000 at once",
		testnet.Evil + ":23":      "hands the connection to the outlet",
		"ssh.example.org:22":      "hands the connection to the outlet",
		"allowed.example.org:443": "now the worker's connection (tls): reached",
	} {
		if d := s.Expect(0, "firewall", "explain", target); !strings.Contains(flat(d.Out), want) || strings.Contains(d.Out, "TIMEOUT") {
			t.Errorf("firewall explain %s says\n%s", target, d.Out)
		}
	}
	if d := s.Expect(0, "explain", "B28"); !strings.Contains(flat(d.Out), "gvisor held differently: ports that no line names are refused inside") {
		t.Errorf("explain says\n%s", d.Out)
	}
}

// flat is a text in one line, with single spaces.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// ownPID1 are scripts that read or change the PID 1 of a worker; each has to fail.
var ownPID1 = []string{
	"cat /proc/1/environ", "cat /proc/1/maps", "head -c 1 /proc/1/mem", "readlink /proc/1/exe", "readlink /proc/1/fd/1", "echo x >/proc/1/fd/1", "ls /proc/1/root/",
}

// TestB13_GVisor: a worker with `kernel: sandboxed` has another kernel than this machine,
// and is in its room by an outlet.
func TestB13_GVisor(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a worker with kernel: sandboxed has a kernel of its own, and the network of its room")
	if s == nil {
		return
	}
	here, err := os.ReadFile("/proc/version")
	if err != nil {
		t.Fatal(err)
	}
	if inside := s.Expect(0, "exec", "worker", "--", "cat", "/proc/version").Out; inside == string(here) || !strings.Contains(inside, "gvisor") {
		t.Errorf("its kernel is %s", inside)
	}
	network := []string{
		"interfaces -> lo", "http https://allowed.example.org/ ca=/ca.pem -> 200", "tcp ssh.example.org:22 -> data",
		"dns 127.0.0.1 allowed.example.org A -> " + testnet.Allowed, "dns 198.51.100.54 denied.example.org A -> NXDOMAIN",
		"http https://denied.example.org/ ca=/ca.pem connect=" + testnet.Denied + ":443 -> " + cutOff,
	}
	s.Sees("worker", network...)
	for _, script := range ownPID1 {
		if d := s.Run("exec", "worker", "--", "sh", "-c", script); d.Code == 0 {
			t.Errorf("%s: %s", script, d.Out)
		}
	}
	before := lives(s)
	if d := s.Expect(0, "up"); strings.Contains(d.Out, "created") {
		t.Errorf("again: %s", d.Out)
	}
	if now := lives(s); now["worker"] != before["worker"] || now["outlet"] != before["outlet"] {
		t.Errorf("%v, before %v", now, before)
	}
	s.Expect(0, "restart")
	s.Sees("worker", network...)
	d := s.Run("verify")
	if d.Code != 0 || !strings.Contains(d.Out, "held        B13") || !strings.Contains(d.Out, " 0 broken") {
		t.Errorf("verify: %d\n%s%s", d.Code, d.Out, d.Err)
	}
	s.Expect(0, "down")
}

// withOwnKernel gives the worker of the scenario a kernel of its own.
func withOwnKernel(s *scenario.Scenario) {
	s.Helper()
	text, err := os.ReadFile(s.Dir + "/workshop.yaml")
	if err != nil {
		s.Fatal(err)
	}
	s.Write("workshop.yaml", strings.Replace(string(text), "    image: host\n", "    image: host\n    kernel: sandboxed\n", 1))
}

// TestB13_MachinesKernel: a runtime under gVisor's name that makes containers of this
// machine's kernel is found, and the worker doesn't run.
func TestB13_MachinesKernel(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	if !scenario.Alone(t) {
		return
	}
	scenario.NewGVisorEngine(t, instead(t, "shift 2 # gVisor's flags\nexec runc \"$@\""))
	s := scenario.New(t, "restricted", "a worker with kernel: sandboxed never has this machine's kernel, whatever a runtime is called")
	withOwnKernel(s)
	d := s.Expect(4, "up")
	if !strings.Contains(d.Err, "B13") || !strings.Contains(d.Err, "kernel: asked another than this machine's, found this machine's") {
		t.Errorf("up: %s", d.Err)
	}
	if out := s.Run("ps", "-a").Out; strings.Contains(out, "worker    worker") {
		t.Errorf("the worker is still there:\n%s", out)
	}
}

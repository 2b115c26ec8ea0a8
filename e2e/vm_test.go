//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// inVM is a workshop whose worker is in a virtual machine without KVM.
var inVM = &scenario.Standing{Dir: "machine", Flags: []string{"--emulate", "--wait-timeout", "2m"}, Prepare: func(s *scenario.Scenario) {
	s.Env = append(scenario.VM(s), "E2E_TOKEN="+vmToken)
	repositories(s)
}}

// repositories makes those that the worker has mounted.
func repositories(s *scenario.Scenario) {
	s.Helper()
	for _, dir := range []string{"repo", "git"} {
		if out, err := exec.Command("git", "init", "-q", filepath.Join(s.Dir, dir)).CombinedOutput(); err != nil {
			s.Fatalf("%v: %s", err, out)
		}
	}
	s.Chown()
}

// vmToken is its worker's secret.
const vmToken = "a-value-that-no-file-has"

// onlyThere is why tests of virtual machines run on one engine.
const onlyThere = "virtual machines are the namespace engine's"

// machineInVM is the workshop of inVM for a test of its own, not up.
func machineInVM(t *testing.T, intent string) *scenario.Scenario {
	t.Helper()
	s := scenario.New(t, "machine", intent)
	repositories(s)
	s.Env = append(scenario.VM(t), "E2E_TOKEN="+vmToken, "E2E_PORT="+freePort(t))
	return s
}

// upInVM brings it up, without KVM.
func upInVM(s *scenario.Scenario) scenario.Done {
	s.Helper()
	return s.Up(inVM.Flags...)
}

// closedInVM are probes that are refused in every state of the room of a worker in a virtual
// machine, as on gVisor.
var closedInVM = []string{
	"connect 198.51.100.66:9000 -> ECONNREFUSED", "udp 198.51.100.66:5000 -> ECONNREFUSED", "connect [2001:db8:1::66]:9000 -> ENETUNREACH|ECONNREFUSED",
	"tcp 198.51.100.66:23 -> " + cutOff, "tcp 127.0.0.1:80 -> " + cutOff,
}

// TestVMNetwork: another kernel without a network card, and the same network (B13, B20, B23–B28).
func TestVMNetwork(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := inVM.Look(t, "a worker in a virtual machine has a kernel of its own, and the names, addresses and denials of a worker that has this machine's")
	here, err := os.ReadFile("/proc/version")
	if err != nil {
		t.Fatal(err)
	}
	if inside := s.Expect(0, "exec", "worker", "--", "cat", "/proc/version").Out; inside == string(here) || !strings.HasPrefix(inside, "Linux version ") {
		t.Errorf("its kernel is %s", inside)
	}
	s.Internet.Reset()
	s.Sees("worker", append([]string{
		"interfaces -> lo",
		"http https://allowed.example.org/ ca=/ca.pem -> 200",
		"http http://allowed.example.org/ -> 200",
		"tcp ssh.example.org:22 -> data",
		"dns 127.0.0.1 allowed.example.org A -> " + testnet.Allowed,
		"dns 198.51.100.54 denied.example.org A -> NXDOMAIN",
		"http https://denied.example.org/ ca=/ca.pem connect=" + testnet.Denied + ":443 -> " + cutOff,
		"http http://169.254.169.254/latest/meta-data/ -> 403",
	}, closedInVM...)...)
	silent(s, testnet.Evil)
	silent(s, testnet.Denied)
	s.Eventually("denials are in the guard's log", func() bool {
		denied := map[string]bool{}
		for _, e := range s.Events() {
			if address, ok := e["address"].(string); ok && e["verdict"] == "deny" {
				denied[address] = true
			}
		}
		return denied[testnet.Evil] && denied["169.254.169.254"]
	})
}

// TestVMFiles: what the worker may read and write is decided on the host (B3, B7–B9, B11).
func TestVMFiles(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := inVM.Look(t, "a worker in a virtual machine has its mounts, and what is read-only, excluded or held for the host stays so")
	s.Sees("worker",
		"write /new -> EROFS", "write /usr/new -> EROFS", "write /workspace/in/new -> EROFS", `write /workspace/in/a.txt text="no" -> EROFS`, "write /copy/new -> EROFS",
		"write /workspace/out/other -> ok", "write /tmp/new -> ok", "write /run/secrets/token -> EROFS|EACCES",
	)
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "echo new >/workspace/out/new")
	if got := s.Read("out/new"); got != "new\n" {
		t.Errorf("on the host there is %q", got)
	}
	if info, err := os.Stat(filepath.Join(s.Dir, "out/new")); err != nil || info.Sys().(*syscall.Stat_t).Uid != scenario.UID {
		t.Errorf("%+v, %v", info, err)
	}
	for path, want := range map[string]string{"/workspace/in/a.txt": "a line\n", "/copy/a.txt": "a line\n", "/workspace/out/kept": "kept\n", "/run/secrets/token": vmToken} {
		if d := s.Run("exec", "worker", "--", "cat", path); d.Code != 0 || d.Out != want {
			t.Errorf("%s: got %q, %s, want %q", path, d.Out, d.Err, want)
		}
	}
	for _, path := range []string{"/copy/dotenv", "/shares", "/machine.json", "/guest.json", "/kit"} {
		if d := s.Run("exec", "worker", "--", "cat", path); d.Code == 0 {
			t.Errorf("%s is there: %s", path, d.Out)
		}
	}
	// A change of the host's is seen soon.
	s.Write("out/late", "late")
	s.Eventually("a file of the host's is seen", func() bool { return s.Run("exec", "worker", "--", "cat", "/workspace/out/late").Out == "late" })
	// B8: what git would run on the host isn't the worker's, which may commit where it is granted.
	s.Sees("worker", "write /workspace/repo/new -> ok", "write /workspace/repo/.git/config -> EROFS", "write /workspace/repo/.git/hooks/pre-commit -> EROFS",
		"write /workspace/git/.git/hooks/pre-commit -> EROFS")
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "cd /workspace/git && echo text >file && git add file && git -c user.name=w -c user.email=w@example.org commit -qm one")
	if out, err := exec.Command("git", "-C", filepath.Join(s.Dir, "git"), "-c", "safe.directory=*", "log", "--format=%s").CombinedOutput(); err != nil || string(out) != "one\n" {
		t.Errorf("on the host: %v %s", err, out)
	}
	for _, move := range []string{"mv /workspace/repo/.git /workspace/repo/other", "mv /workspace/git/.git/hooks /workspace/git/.git/other"} {
		if d := s.Run("exec", "worker", "--", "sh", "-c", move); d.Code == 0 {
			t.Errorf("%s succeeded", move)
		}
	}
}

// TestVMSessions: commands, copies and calls are those of any worker (B41).
func TestVMSessions(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := inVM.Look(t, "a command in a virtual machine has its exit code, its streams, its user and its terminal; cp and call work")
	if d := s.Run("exec", "worker", "--", "sh", "-c", "echo out; echo err >&2; exit 7"); d.Code != 7 || d.Out != "out\n" || d.Err != "err\n" {
		t.Errorf("got %d, %q, %q", d.Code, d.Out, d.Err)
	}
	if d := s.Run("exec", "worker", "--", "sh", "-c", "id -u; id -g; echo $LEVEL; pwd; cat /etc/hostname; grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/self/status"); d.Out != "1000\n1000\nhigh\n/workspace\nworkshop\nCapBnd:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n" &&
		d.Out != "1000\n1000\nhigh\n/workspace\nworkshop\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n" {
		t.Errorf("got %q, %s", d.Out, d.Err)
	}
	if d := s.Run("exec", "worker", "--", "sh", "-c", "kill -TERM $$"); d.Code != 128+15 {
		t.Errorf("a signal: %d", d.Code)
	}
	if d := s.Run("exec", "--user", "0", "worker", "--", "true"); d.Code == 0 || !strings.Contains(d.Err, "B4") {
		t.Errorf("as root: %d, %s", d.Code, d.Err)
	}
	dir := s.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte(strings.Repeat("0123456789", 100_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Expect(0, "cp", from, "worker:/tmp/copied")
	s.Expect(0, "cp", "worker:/tmp/copied", to)
	if got, err := os.ReadFile(to); err != nil || len(got) != 1_000_000 {
		t.Errorf("cp: %d bytes, %v", len(got), err)
	}
	if d := s.Run("call", "--approve-all", "worker", "shell", "command=echo $((6*7))"); d.Code != 0 || !strings.Contains(d.Out, "42") {
		t.Errorf("call: %d, %s%s", d.Code, d.Out, d.Err)
	}
	if d := s.Run("call", "worker", "read_file", "path=/workspace/in/a.txt"); d.Code != 0 || !strings.Contains(d.Out, "a line") {
		t.Errorf("call: %d, %s%s", d.Code, d.Out, d.Err)
	}
	if d := s.Run("logs", "worker"); d.Code != 0 {
		t.Errorf("logs: %d, %s", d.Code, d.Err)
	}
	d := s.Expect(0, "ps")
	if !strings.Contains(d.Out+d.Err, "emulated: worker: without KVM a virtual machine is not a boundary (B13 is not held)") || !strings.Contains(d.Out, "B13") {
		t.Errorf("ps:\n%s%s", d.Out, d.Err)
	}
}

// TestVMAgain: what runs as it should is left alone, and a live change reaches it (B27).
func TestVMAgain(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := inVM.Look(t, "up again changes nothing, and a live change reaches a worker in a virtual machine, which runs on")
	if d := s.Up(inVM.Flags...); strings.Contains(d.Out, "created") {
		t.Errorf("again: %s", d.Out)
	}
	s.Sees("worker", "connect ssh.example.org:2222 -> ECONNREFUSED")
	s.Expect(0, "firewall", "allow", "ssh.example.org:2222")
	s.Eventually("the port is open", func() bool { return s.Probe("worker", "tcp ssh.example.org:2222 send=x")[0].Seen == "data" })
	s.Expect(0, "firewall", "deny", "ssh.example.org:2222")
	s.Eventually("the port is closed", func() bool { return s.Probe("worker", "tcp ssh.example.org:2222 send=x")[0].Seen != "data" })
}

//go:build linux

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestVMLimits: a worker lives up to its limits, and beyond them it alone loses a process (B5).
func TestVMLimits(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "memory and processes of a worker in a virtual machine are limited, in its guest and on the host")
	upInVM(s)
	before := lives(s)["worker"]
	if got, want := s.Limits("worker"), (scenario.Limits{Memory: 640 << 20, CPUs: 2, Pids: 64}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if d := s.Run("exec", "worker", "--", "sh", "-c", "/opt/workshop/workshop-init probe 'memory 64M -> ok' 'memory 345M -> killed' 'processes 5 -> ok' 'processes 200 -> EAGAIN'; exit $?"); d.Code != 0 {
		t.Errorf("exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	d := s.Run("call", "--approve-all", "worker", "shell", "command=(head -c 400M /dev/zero | tail -c 345M > /dev/null); true")
	if want := "a process was OOM-killed while the command ran: the worker's memory was used up"; d.Code != 0 || !strings.Contains(d.Out+d.Err, want) {
		t.Errorf("exit code %d, %s%s, want 0 and %q", d.Code, d.Out, d.Err, want)
	}
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	if now := lives(s)["worker"]; now != before {
		t.Errorf("the worker is %s, was %s", now, before)
	}
}

// TestVMManyFiles: a guest that has looked at more files than it may know at once finds others.
func TestVMManyFiles(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "a worker in a virtual machine may walk through more files than its guest may know at once")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "memory: 640M", "memory: 384M", 1))
	const files = 26_000 // it may know 24,576
	for i := range files {
		if err := os.WriteFile(filepath.Join(s.Dir, "out", strconv.Itoa(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Chown()
	upInVM(s)
	for range 2 {
		if d := s.Run("exec", "worker", "--", "sh", "-c", "ls -l /workspace/out | wc -l"); d.Code != 0 || d.Err != "" || d.Out != strconv.Itoa(files+2)+"\n" {
			t.Errorf("got %d, %s, %s", d.Code, d.Out, d.Err)
		}
	}
	s.Sees("worker", "write /workspace/out/last -> ok")
}

// TestVMPorts: a published port leads into the machine (B10).
func TestVMPorts(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "a published port reaches a worker in a virtual machine, by the guard and the outlet")
	upInVM(s)
	port := strings.TrimPrefix(s.Env[len(s.Env)-1], "E2E_PORT=")
	get := getPublished(port)
	if body, err := get("/"); err == nil {
		t.Errorf("nobody listens: %q", body)
	}
	serve := s.Command(t.Context(), "exec", "worker", "--", "python3", "-c", servesUntilEnd, "127.0.0.1")
	serve.Stderr = os.Stderr
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	answers := func(what string) {
		s.Eventually(what, func() bool { body, err := get("/"); return err == nil && body == "at 127.0.0.1" })
	}
	answers("a server of the worker's")
	s.Crash("outlet")
	answers("the server, when the outlet is back")
	_, _ = get("/end")
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
}

// TestVMGuardAndOutletKilled: neither the guard's end nor the outlet's costs the worker (B29).
func TestVMGuardAndOutletKilled(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "a worker in a virtual machine outlives guard and outlet, and what it connects to meanwhile waits")
	edit(s, "[allowed.example.org, ", "[allowed.example.org, "+testnet.NPMHost+", ")
	upInVM(s)
	worker := lives(s)["worker"]
	for _, service := range []string{"guard", "outlet"} {
		s.Crash(service)
		r := s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem connect=198.51.100.10:443 limit=20s")[0]
		if r.Seen != "200" {
			t.Errorf("a connection made while the %s was away: %s (%s)", service, r.Seen, r.Detail)
		}
		s.Sees("worker", append([]string{"dns 198.51.100.54 denied.example.org A -> NXDOMAIN", "tcp ssh.example.org:22 -> data"}, closedInVM...)...)
	}
	downloadsAgain(s)
	if now := lives(s)["worker"]; now != worker {
		t.Errorf("the worker is %s, was %s", now, worker)
	}
}

// downloadsAgain: a download whose outlet is killed in the middle fails, and is made again.
func downloadsAgain(s *scenario.Scenario) {
	s.Helper()
	const half = 1 << 20
	var asked atomic.Int32
	goOn := make(chan struct{})
	s.Cleanup(s.Internet.Site(testnet.NPMHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(2*half))
		_, _ = w.Write(make([]byte, half))
		if asked.Add(1) == 1 {
			_ = http.NewResponseController(w).Flush()
			<-goOn
		}
		_, _ = w.Write(make([]byte, half))
	})))
	ended := make(chan scenario.Done, 1)
	go func() {
		ended <- s.Run("exec", "worker", "--", "curl", "-sS", "--retry", "5", "--retry-all-errors", "--cacert", "/ca.pem", "-o", "/tmp/download", "-w", "%{size_download}", "https://"+testnet.NPMHost+"/")
	}()
	s.Eventually("half of it is sent", func() bool { return asked.Load() == 1 })
	s.Crash("outlet")
	close(goOn)
	if d := <-ended; d.Code != 0 || d.Out != strconv.Itoa(2*half) || asked.Load() < 2 {
		s.Errorf("exit code %d, %s bytes, %d requests: %s", d.Code, d.Out, asked.Load(), d.Err)
	}
}

// TestVMDown: a machine that is killed ends its container, restart boots another, and down
// leaves nothing.
func TestVMDown(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "a killed machine is told, restart boots another, stop and down end it and leave nothing")
	upInVM(s)
	s.Crash("worker")
	s.Eventually("the worker ended", func() bool { return s.Containers()["worker"].State == "exited" })
	if d := s.Run("exec", "worker", "--", "true"); d.Code == 0 || !strings.Contains(d.Err, "not running") && !strings.Contains(d.Err, "exited") {
		t.Errorf("exec: %d, %s", d.Code, d.Err)
	}
	s.Expect(0, "restart", "--wait-timeout", "2m", "worker")
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "write /workspace/out/again -> ok")
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}

// TestVMRefused: what a virtual machine can't have is refused by name before anything starts.
func TestVMRefused(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := machineInVM(t, "what a virtual machine can't have, or this machine hasn't, is refused by name, and nothing starts")
	file := s.Read("workshop.yaml")
	refused := func(name string, code int, want string, args ...string) {
		t.Helper()
		d := s.Run(append([]string{"up"}, args...)...)
		if d.Code != code || !strings.Contains(strings.Join(strings.Fields(d.Out+d.Err), " "), want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", name, d.Code, code, want, d.Out, d.Err)
		}
		if c := s.Containers(); len(c) != 0 {
			t.Errorf("%s: there is %v", name, c)
		}
	}
	if _, err := os.Stat("/sys/module/kvm_pvm"); err == nil {
		refused("without KVM", 4, "worker can't have kernel vm here (B13): no virtual machines in hardware (B13)")
	}
	refused("--frozen", 4, "--frozen gives no promise up (B13); nothing was started", "--frozen", "--emulate")
	s.Expect(0, "lock")
	env := s.Env
	s.Env = append(env[:len(env):len(env)], "CI=true")
	refused("continuous integration with a lock", 4, "--frozen gives no promise up (B13); nothing was started", "--emulate")
	s.Env = env
	if err := os.Remove(filepath.Join(s.Dir, "workshop.lock")); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) { s.Write("workshop.yaml", strings.Replace(file, from, to, 1)) }
	change("memory: 640M", "memory: 300M")
	refused("memory", 4, "worker has 300m of memory, and its kernel needs 384m (B5)", "--emulate")
	change("target: /workspace/repo, mode: rw}", "target: /workspace/repo, mode: rw, sockets: allow}")
	refused("sockets", 4, "into which no socket of ./repo reaches", "--emulate")
	change("dns: [198.51.100.53]}", "dns: [198.51.100.53], agents: [{ssh: k, hosts: [\"ssh.example.org:22\"]}]}")
	refused("an agent", 3, "it has no ssh-agent (B33)", "--emulate")
	change("mode: restricted, allow: [allowed.example.org, \"ssh.example.org:22\"]", "mode: open")
	refused("open", 3, "only a list of ports is carried to it (B28)", "--emulate")
	change("    image: host", "    runtime: runc\n    image: host")
	refused("a runtime", 3, "which runtime makes it is the engine's to say", "--emulate")
	s.Write("Dockerfile", "FROM scratch\n")
	change("    image: host", "    build: .")
	refused("a build", 4, "has `build:`, which needs the docker engine", "--emulate")
	s.Write("workshop.yaml", file)
	if d := s.Run("compile", "--load"); d.Code == 0 || !strings.Contains(d.Err, "plain Compose") {
		t.Errorf("compile --load: %d\n%s", d.Code, d.Err)
	}
	s.Env = append(env[:len(env):len(env)], "XDG_CONFIG_HOME="+s.TempDir())
	refused("no kit", 4, "there is no kit for virtual machines: your settings have no vm_kit", "--emulate")
	s.Env = env
}

// TestVMImage: the root of a worker with an image is a disk that is made of it once, and
// read-only (B3).
func TestVMImage(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := scenario.At(t, "a worker in a virtual machine has the root of its image, which it can't write to", map[string]string{
		"workshop.yaml":            strings.Replace(strings.Replace(smallest, "  container:\n", "  container:\n    kernel: vm\n", 1), "    - security-scanner\n", "", 1),
		"workers/code-reviewer.md": "---\nname: code-reviewer\ndescription: Reviews code for quality\nallowed-tools: Read, Grep\n---\nYou are a code reviewer.\n",
		"src/main.go":              "package main\n",
	})
	s.Env = scenario.VM(t)
	importImage(t, s, "llm-do-worker:latest")
	upInVM(s)
	s.Sees("code-reviewer", "read /workspace/src/main.go -> ok", "write /workspace/src/x -> EROFS", "write /workspace/output/done text=done -> ok", "write /etc/new -> EROFS", "write /bin/tool -> EROFS|EACCES",
		"interfaces -> lo", "connect 198.51.100.66:9000 -> ECONNREFUSED", "lookup allowed.example.org -> NXDOMAIN")
	s.SeesBy("code-reviewer", "/bin/tool", "write /tmp/new -> ok")
	if !slices.ContainsFunc(s.Containers()["code-reviewer"].Mounts, func(m scenario.Mount) bool { return m.Target == "/root.erofs" }) {
		t.Error("its machine has no disk")
	}
	s.Expect(0, "down")
}

//go:build linux

package e2e

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// onGVisor is a scenario whose worker has `kernel: sandboxed`, and is up on an engine of its
// own; nil: the test runs elsewhere (scenario.Alone).
func onGVisor(t *testing.T, of func() *scenario.Scenario) *scenario.Scenario {
	t.Helper()
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return nil
	}
	scenario.NewGVisorEngine(t, runsc)
	s := of()
	withOwnKernel(s)
	s.Up()
	return s
}

func restrictedOnGVisor(t *testing.T, intent string) *scenario.Scenario {
	t.Helper()
	return onGVisor(t, func() *scenario.Scenario { return scenario.New(t, "restricted", intent) })
}

// getPublished gets what is at a path of a published port.
func getPublished(port string) func(path string) (string, error) {
	return func(path string) (string, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
}

// closedOnGVisor are probes that are refused in every state of the room of a worker with
// a network stack of its own. Where nobody accepts, it refuses by itself.
var closedOnGVisor = []string{
	"connect 198.51.100.66:9000 -> ECONNREFUSED", "udp 198.51.100.66:5000 -> ECONNREFUSED", "connect [2001:db8:1::66]:9000 -> ENETUNREACH",
	"tcp 198.51.100.66:23 -> " + cutOff, "tcp 198.51.100.66:993 -> " + cutOff, "tcp 127.0.0.1:80 -> " + cutOff,
}

// TestGVisorNetwork: another kernel, and the same network (B20, B23–B28).
func TestGVisorNetwork(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a worker on gVisor has another kernel, and the names, addresses and denials of a worker that has this machine's")
	if s == nil {
		return
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if inside := s.Expect(0, "exec", "worker", "--", "cat", "/proc/sys/kernel/random/boot_id").Out; len(inside) != len(boot) || inside == string(boot) {
		t.Errorf("boot id %q, here %q", inside, boot)
	}
	s.Internet.Reset()
	s.Sees("worker", append([]string{
		"interfaces -> lo",
		"http https://allowed.example.org/ ca=/ca.pem -> 200",
		"http http://allowed.example.org/ -> 200",
		"tcp ssh.example.org:22 -> data",
		"dns 198.51.100.54 allowed.example.org A -> " + testnet.Allowed,
		"dns 198.51.100.54 denied.example.org A -> NXDOMAIN",
		"http https://denied.example.org/ ca=/ca.pem connect=" + testnet.Denied + ":443 -> " + cutOff,
		"http http://169.254.169.254/latest/meta-data/ -> 403",
	}, closedOnGVisor...)...)
	silent(s, testnet.Evil)
	silent(s, testnet.Denied)
	denied := func() (n int) {
		for _, e := range s.Events() {
			if e["verdict"] == "deny" && e["address"] == testnet.Evil {
				n++
			}
		}
		return n
	}
	s.Eventually("two ports that relays listen at are denied", func() bool { return denied() >= 2 })
	// It answers pings itself.
	if r := s.Probe("worker", "icmp 198.51.100.66")[0]; r.Seen != "reply" {
		t.Errorf("icmp: %s", r.Seen)
	}
	silent(s, testnet.Evil)
}

// TestGVisorLiveChange: ports open and close under a worker that runs on.
func TestGVisorLiveChange(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a live change reaches a worker on gVisor, which runs on")
	if s == nil {
		return
	}
	before := lives(s)
	s.Sees("worker", "connect ssh.example.org:2222 -> ECONNREFUSED")
	s.Expect(0, "firewall", "allow", "ssh.example.org:2222")
	s.Eventually("the port is open", func() bool { return s.Probe("worker", "tcp ssh.example.org:2222 send=x")[0].Seen == "data" })
	s.Expect(0, "firewall", "deny", "ssh.example.org:2222")
	s.Eventually("the port is closed", func() bool { return s.Probe("worker", "tcp ssh.example.org:2222 send=x")[0].Seen != "data" })
	s.Expect(0, "firewall", "deny", "ssh.example.org:22")
	s.Sees("worker", "tcp ssh.example.org:22 send=x -> NXDOMAIN|"+cutOff, "http https://allowed.example.org/ ca=/ca.pem -> 200")
	if now := lives(s); now["worker"] != before["worker"] || now["outlet"] != before["outlet"] {
		t.Errorf("%v, before %v", now, before)
	}
}

// TestGVisorWithoutGuardOrOutlet: neither the guard's end nor the outlet's costs the worker.
func TestGVisorWithoutGuardOrOutlet(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "a worker on gVisor outlives guard and outlet, and what it connects to meanwhile waits")
	if s == nil {
		return
	}
	worker := lives(s)["worker"]
	for _, service := range []string{"guard", "outlet", "guard", "outlet"} {
		s.Internet.Reset()
		s.Crash(service)
		began := time.Now()
		r := s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem connect=198.51.100.10:443 limit=20s")[0]
		if r.Seen != "200" {
			t.Errorf("a connection made while the %s was away: %s (%s)", service, r.Seen, r.Detail)
		}
		t.Logf("%s: %v", service, time.Since(began))
		s.Sees("worker", append([]string{"dns 198.51.100.54 denied.example.org A -> NXDOMAIN", "tcp ssh.example.org:22 -> data"}, closedOnGVisor...)...)
		silent(s, testnet.Evil)
	}
	if now := lives(s)["worker"]; now != worker {
		t.Errorf("the worker is %s, was %s", now, worker)
	}
	if logs := s.Logs("worker"); strings.Contains(logs, "relay") {
		t.Errorf("the worker said:\n%s", logs)
	}
}

// TestGVisorPublished: a published port leads into the sandbox.
func TestGVisorPublished(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	port := freePort(t)
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.New(t, "ports", "a published port reaches a worker on gVisor, by the guard and the outlet")
		s.Env = []string{"E2E_PORT=" + port}
		return s
	})
	if s == nil {
		return
	}
	get := getPublished(port)
	if body, err := get("/"); err == nil {
		t.Errorf("nobody listens: %q", body)
	}
	for _, address := range []string{"127.0.0.1", "::1", "0.0.0.0"} {
		serve := s.Command(t.Context(), "exec", "worker", "--", "python3", "-c", servesUntilEnd, address)
		serve.Stderr = os.Stderr
		if err := serve.Start(); err != nil {
			t.Fatal(err)
		}
		answers := func(what string) {
			s.Eventually(address+": "+what, func() bool { body, err := get("/"); return err == nil && body == "at "+address })
		}
		answers("a server of the worker's")
		s.Crash("outlet")
		answers("the server, when the outlet is back")
		_, _ = get("/end")
		if err := serve.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// servesUntilEnd is an HTTP server at an address of the worker's until it is asked for /end.
const servesUntilEnd = `
import http.server, socket, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'at ' + sys.argv[1].encode())
        self.server.ended = self.path == '/end'
    def log_message(self, *args):
        pass
class Server(socketserver.TCPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
    allow_reuse_address = True
    ended = False
    def handle_error(self, *args):
        pass
server = Server((sys.argv[1], 8080), Handler)
while not server.ended:
    server.handle_request()
`

// TestGVisorLostMount: a read-only mount whose place the host takes away ends the worker once
// something looks there (B3, B8).
func TestGVisorLostMount(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.At(t, "a worker on gVisor whose read-only mount is gone doesn't go on", withMount(aWorkshopInside))
		s.Write("workers/worker.md", "---\nname: worker\ndescription: Reads.\nallowed-tools: [Read]\n---\nYou read.\n")
		mkdir(t, s.Dir, ".vscode")
		s.Chown()
		return s
	})
	if s == nil {
		return
	}
	s.Sees("worker", "write /workspace/.vscode/new -> EROFS|EACCES", `write /workspace/workshop.yaml text="no" -> EROFS|EACCES`, "write /workspace/other -> ok")
	dir := filepath.Join(s.Dir, ".vscode")
	if err := errors.Join(os.Rename(dir, dir+"~"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	s.Chown()
	_ = s.ProbeLoop(s.Inspect("worker"), "write /workspace/.vscode/new for=5s")
	s.Eventually("the worker ended", func() bool { return s.Containers()["worker"].State == "exited" })
	if logs := s.Logs("worker"); !strings.Contains(logs, "FAILED the mount at /workspace/.vscode is gone") {
		t.Errorf("it said:\n%s", logs)
	}
}

// TestGVisorFlags: a runtime that is registered with other flags gets no worker.
func TestGVisorFlags(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return
	}
	scenario.NewGVisorEngine(t, runsc, "--host-uds=all", "--network=host")
	s := scenario.New(t, "restricted", "up refuses a runtime of gVisor's that would open this machine to a worker, and says how it is registered")
	withOwnKernel(s)
	const why, do = "registered with flags that may open it (--host-uds=all, --network=host)", `"runtimeArgs": ["--host-uds=open", "--network=sandbox"]`
	says(s, s.Expect(4, "--engine", "docker", "up"), "worker can't have kernel sandboxed here (B13)", why, do)
	says(s, s.Expect(4, "up"), "on no engine here each worker has its kernel (B13)", "docker: worker can't have kernel sandboxed", why, "namespace: ", do)
	config := t.TempDir()
	mkdir(t, config, "workshop")
	if err := os.WriteFile(filepath.Join(config, "workshop/config.yaml"), []byte("kernels: {sandboxed: [vm]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "XDG_CONFIG_HOME="+config)
	says(s, s.Expect(4, "--engine", "docker", "up"), "your settings have `kernels: {sandboxed: [vm]}`", "`kernels: {sandboxed: [gvisor, vm]}` in your settings file")
	if c := s.Containers(); len(c) != 0 {
		t.Errorf("there is %v", c)
	}
}

// TestGVisorWrapped: a program in the place of runsc that adds flags of its own. A worker
// ends before anything can be started in it, and says what it lacks; flags that leave no
// trace in it are found outside of it (B13).
func TestGVisorWrapped(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return
	}
	flag := filepath.Join(t.TempDir(), "flag")
	scenario.NewGVisorEngine(t, instead(t, "a=$1 b=$2\nshift 2\nexec "+runsc+" \"$a\" \"$b\" $(cat "+flag+") \"$@\""))
	// What a worker says that ended before it was looked at.
	const address = "not every address is the worker's own (listen udp4 1.1.1.1:0: bind: cannot assign requested address): register its runtime with --network=sandbox"
	const wrapped = "worker isn't what was asked of the engine: flags of gVisor: asked as with --host-uds=open --network=sandbox, found "
	s := scenario.New(t, "restricted", "a worker whose runtime does otherwise than it is registered isn't ready")
	withOwnKernel(s)
	for _, tt := range []struct{ flag, want string }{
		{"--host-uds=none", wrapped + "--host-uds=none (B13)"},
		{"--network=none", wrapped + "--network=none (B13)"},
		{"--network=host", wrapped + "--network=host (B13)"},
		{"--host-uds=all", wrapped + "--host-uds=all (B13)"},
		{"--net-raw", wrapped + "--net-raw=true (B13)"},
		{"--overlay2=all:memory", wrapped + "--overlay2=all:memory (B13)"},
		{"--allow-flag-override", wrapped + "--allow-flag-override=true (B13)"},
		{"--TESTONLY-unsafe-nonroot", wrapped + "--TESTONLY-unsafe-nonroot=true (B13)"},
		{"--ignore-cgroups", "B13 flags of gVisor: asked as with --host-uds=open --network=sandbox, found --ignore-cgroups=true; B5 memory: asked "},
	} {
		if err := os.WriteFile(flag, []byte(tt.flag), 0o644); err != nil {
			t.Fatal(err)
		}
		if d := s.Run("up"); d.Code == 0 || !strings.Contains(d.Err, tt.want) && !(strings.HasPrefix(tt.flag, "--network=") && strings.Contains(d.Err, address)) {
			t.Errorf("%s: exit code %d\n%swant %s", tt.flag, d.Code, d.Err, tt.want)
		}
		if c, ok := s.Containers()["worker"]; ok && c.State == "running" {
			t.Errorf("%s: the worker runs", tt.flag)
		}
	}
}

// instead is a program in the place of a runtime.
func instead(t *testing.T, script string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-runtime.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "runtime")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

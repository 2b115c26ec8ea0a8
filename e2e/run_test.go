//go:build linux

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// onEngine is the flag for a run without a file, which else chooses by itself.
func onEngine(args ...string) []string {
	name := "namespace"
	if scenario.DockerAPI() {
		name = "docker"
	}
	return append([]string{"run", "--engine", name}, args...)
}

// runState gives a scenario a state directory of its own, and returns what is in it of
// runs.
func runState(s *scenario.Scenario) (left func() []string) {
	s.Helper()
	state := s.TempDir()
	s.Env = append(s.Env, "XDG_STATE_HOME="+state)
	return func() (out []string) {
		for _, dir := range []string{"runs", "projects", "namespace"} {
			entries, _ := os.ReadDir(filepath.Join(state, "workshop", dir))
			for _, e := range entries {
				if strings.Contains(e.Name(), "-run") {
					out = append(out, dir+"/"+e.Name())
				}
			}
		}
		return out
	}
}

// leftOf is what the engine has of runs that left notes.
func leftOf(s *scenario.Scenario, notes []string) (out []string) {
	for _, note := range notes {
		of := *s
		of.Project = filepath.Base(note)
		out = append(out, left(&of)...)
	}
	return out
}

// supervised reports whether a project has a supervisor: its arguments name it.
func supervised(t *testing.T, project string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatal("no processes", err)
	}
	for _, line := range lines {
		b, _ := os.ReadFile(line) // it may have ended
		if strings.Contains(string(b), "supervise\x00") && strings.Contains(string(b), "/"+project+"\x00") {
			return true
		}
	}
	return false
}

const runFile = `workshop:
  name: run
  container:
    image: host
    network: {mode: restricted, allow: [allowed.example.org, ssh.example.org:22], dns: [198.51.100.53]}
    mounts: [./ca.pem:/ca.pem, ./src:/workspace/src:rw]
    secrets: [{name: token, env: E2E_RUN_TOKEN}]
    resources: {memory: 256M, pids: 64}
  workers:
    - {name: one, container: {secrets: [token]}}
    - {name: two, container: {network: none}}
`

// runScenario has a workshop with two workers.
func runScenario(t *testing.T, intent string) (s *scenario.Scenario, left func() []string) {
	t.Helper()
	worker := "---\nname: NAME\ndescription: Works\nallowed-tools: Bash\n---\nWork.\n"
	s = scenario.At(t, intent, map[string]string{
		"workshop.yaml": runFile, "src/f": "f\n",
		"workers/one.md": strings.Replace(worker, "NAME", "one", 1), "workers/two.md": strings.Replace(worker, "NAME", "two", 1),
	})
	s.Env = append(s.Env, "E2E_RUN_TOKEN=t-30b1")
	return s, runState(s)
}

func TestRun(t *testing.T) {
	s, left := runScenario(t, "a run is its command: streams, codes, signals, and nothing of it is left")
	said := func(d scenario.Done, out, err string) {
		t.Helper()
		if d.Out != out || err == "" && d.Err != "" || !strings.Contains(d.Err, err) {
			t.Errorf("got %q and %q, want %q and %q", d.Out, d.Err, out, err)
		}
	}
	said(s.Expect(0, "run", "one", "--", "sh", "-c", "cat src/f; cat /run/secrets/token; pwd"), "f\nt-30b1/workspace\n", "")
	said(s.Expect(7, "run", "two", "--", "sh", "-c", "echo err >&2; exit 7"), "", "err\n")
	said(s.Expect(127, "run", "one", "--", "no-such-program"), "", "error: no-such-program: not found in the worker\n")
	said(s.Expect(126, "run", "one", "--", "/etc/passwd"), "", "error: /etc/passwd: can't be executed in the worker\n")
	said(s.Expect(137, "run", "one", "--", "sh", "-c", "kill -KILL $$"), "", "hint: 137 is SIGKILL: most often a program needed more than the memory limit of 256M (resources.memory of one)\n")
	said(s.Expect(124, "run", "--timeout", "1s", "one", "--", "sleep", "600"), "", "error: the command timed out after 1s\n")
	cmd := s.Command(t.Context(), "run", "two", "--", "wc", "-l")
	cmd.Stdin = strings.NewReader("1\n2\n")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "2" {
		t.Errorf("standard input: %v %q", err, out)
	}
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		cmd := s.Command(t.Context(), "run", "two", "--", "sh", "-c", "echo began; exec sleep 600")
		var out bytes.Buffer
		var mu sync.Mutex
		cmd.Stdout = writerFunc(func(b []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return out.Write(b) })
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the command to begin", func() bool { mu.Lock(); defer mu.Unlock(); return out.Len() > 0 })
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: exit code %d, want %d", signal, got, code)
		}
	}
	if l := left(); l != nil {
		t.Errorf("left: %v", l)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestRunBesideUp(t *testing.T) {
	scenario.NotRootless(t, "projects don't depend on who runs them; TestB20_Run and TestRunKilled are run")
	s, left := runScenario(t, "runs are up beside the workshop and each other, and disturb nothing")
	s.Up()
	before := s.Containers()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if d := s.Run("run", "one", "--", "sh", "-c", "hostname; cat /scratch/x; echo x >/scratch/x"); d.Code != 0 || strings.Contains(d.Out, "x\n") {
				t.Errorf("run: %d %q %q", d.Code, d.Out, d.Err)
			}
		})
	}
	wg.Wait()
	after := s.Containers()
	if len(before) != len(after) {
		t.Fatalf("containers: before %v, after %v", before, after)
	}
	for service, c := range before {
		if c.ID != after[service].ID {
			t.Errorf("%s was replaced", service)
		}
	}
	s.Expect(0, "exec", "one", "--", "true")
	if d := s.Expect(0, "ps"); strings.Contains(d.Out+d.Err, "-run-") {
		t.Errorf("ps speaks of runs:\n%s%s", d.Out, d.Err)
	}
	if d := s.Expect(0, "up"); strings.Contains(d.Out+d.Err, "created") {
		t.Errorf("up made something again:\n%s%s", d.Out, d.Err)
	}
	if l := left(); l != nil {
		t.Errorf("left: %v", l)
	}
	s.Expect(0, "down")
}

// The promises don't depend on how a worker is started: some probes of each kind.
func TestB20_Run(t *testing.T) {
	s, _ := runScenario(t, "a run keeps the promises: no privilege, nothing writable, no network but what a line allows")
	probes := func(args []string, lines ...string) {
		t.Helper()
		d := s.Run(append(args, append([]string{"--", "/opt/workshop/workshop-init", "probe"}, lines...)...)...)
		all := scenario.Results(d.Out)
		if len(all) != len(lines) {
			t.Fatalf("%v: %d results of %d probes: %s%s", args, len(all), len(lines), d.Out, d.Err)
		}
		for i, r := range all {
			if !r.OK {
				t.Errorf("%v: %s\n\tsaw %s (%s)", args, lines[i], r.Seen, r.Detail)
			}
		}
	}
	always := []string{
		"interfaces -> lo", "status CapEff -> " + zero, "status CapBnd -> " + zero, "status NoNewPrivs -> 1", "status Seccomp -> 2", "socket AF_VSOCK SOCK_STREAM -> EPERM|EACCES",
		"syscall mount -> EPERM", "syscall unshare -> EPERM", "syscall clone3 -> ENOSYS", "write /usr/x -> EROFS", "write /ca.pem -> EROFS|EACCES",
	}
	probes([]string{"run", "one"}, append(always,
		"http https://allowed.example.org/ ca=/ca.pem -> 200", "http https://denied.example.org/ ca=/ca.pem connect=198.51.100.11:443 -> "+cutOff,
		"dns 198.51.100.53 denied.example.org A -> NXDOMAIN", "connect 198.51.100.66:9000 -> ECONNREFUSED")...)
	probes([]string{"run", "two"}, append(always, "dns 198.51.100.53 allowed.example.org A -> ENETUNREACH|ECONNREFUSED", "connect 198.51.100.10:80 -> ENETUNREACH")...)
	probes(onEngine("--no-file", "--ro", "./ca.pem:/ca.pem"), append(always, "write /workspace/x -> EROFS", "connect 198.51.100.10:80 -> ENETUNREACH")...)
	// Narrower than its worker.
	probes([]string{"run", "--network", "none", "one"}, "connect 198.51.100.10:80 -> ENETUNREACH")
	probes([]string{"run", "--allow", "ssh.example.org:22", "one"}, "http https://allowed.example.org/ ca=/ca.pem -> NXDOMAIN|"+cutOff)
	probes([]string{"run", "--ro", "./src", "one"}, "write /workspace/src/x -> EROFS")
	if d := s.Run("run", "--deny", "allowed.example.org", "one", "--", "curl", "-sSf", "http://allowed.example.org"); d.Code == 0 || !strings.Contains(d.Err, "(denied by --deny allowed.example.org)") {
		t.Errorf("--deny: %d %q", d.Code, d.Err)
	}
	if n := s.Conns("198.51.100.66", 9000); n != 0 {
		t.Errorf("%d connections came out", n)
	}
}

// A run's flags are as narrow as a worker's container (B40), also by where links lead.
func TestB40_RunNarrows(t *testing.T) {
	s, _ := runScenario(t, "flags of a run open nothing that its worker hasn't")
	s.Write("other/secret", "secret\n")
	s.Write("src/a/f", "f\n")
	file := strings.Replace(runFile, "container: {network: none}", "container: {network: none, mounts: [./src/a:/a]}", 1)
	s.Write("workshop.yaml", file)
	symlink(t, "../../other", filepath.Join(s.Dir, "src/a/out"))
	symlink(t, "..", filepath.Join(s.Dir, "src/a/up"))
	for _, args := range [][]string{
		{"--rw", "./src/a"}, {"--ro", "./other"}, {"--ro", "./src"}, {"--ro", "./src/a/out:/x"}, {"--ro", "./src/a/up:/x"}, {"--ro", "./src/a/../../other:/x"},
		{"--network", "restricted"}, {"--allow", "allowed.example.org"}, {"-m", "1G"}, {"--secret", "token"},
	} {
		d := s.Run(append(append([]string{"run"}, args...), "two", "--", "sh", "-c", "ls /x; cat /x/secret /run/secrets/token")...)
		if d.Code != 125 || d.Out != "" || !strings.Contains(d.Err, "error: "+map[string]string{"-m": "--memory"}[args[0]]+strings.TrimPrefix(args[0], "-m")) {
			t.Errorf("%v: exit code %d, %q\n%s", args, d.Code, d.Out, d.Err)
		}
	}
	// Of a worker's own source that leads elsewhere, a part is no more.
	s.Write("workshop.yaml", strings.Replace(file, "./src/a:/a", "./src/b:/b", 1))
	symlink(t, "../other", filepath.Join(s.Dir, "src/b"))
	for _, source := range []string{"./src/b", "./src/b/secret"} {
		if d := s.Run("run", "--ro", source+":/b", "two", "--", "cat", "/b", "/b/secret"); d.Code != 125 || !strings.Contains(d.Err, "(B40)") {
			t.Errorf("%s: exit code %d, %q\n%s", source, d.Code, d.Out, d.Err)
		}
	}
	s.Write("workshop.yaml", file)
	if d := s.Expect(0, "run", "--ro", "./src/a/f:/x", "two", "--", "cat", "/x"); d.Out != "f\n" {
		t.Errorf("below a mount: %q", d.Out)
	}
}

func TestB08_Run(t *testing.T) {
	s, left := runScenario(t, "what a run writes for this machine is named at its end, and obeyed by nobody")
	open := append(onEngine("--no-file", "--rw", "."), "--")
	d := s.Expect(3, append(open, "sh", "-c", "echo x >.envrc; mkdir .git; exit 3")...)
	for _, want := range []string{"new since the run began: .envrc (B8)", "new since the run began: .git"} {
		if !strings.Contains(d.Err, want) {
			t.Errorf("not said: %s\n%s", want, d.Err)
		}
	}
	kept := left()
	if len(kept) != 1 || !strings.HasPrefix(kept[0], "projects/") {
		t.Fatalf("kept in mind: %v", kept)
	}
	// The definition: a run that ignores it can still write it.
	s.Expect(0, append(open, "sh", "-c", "sed -i 's/64/63/' workshop.yaml")...)
	for _, args := range [][]string{{"run", "two", "--", "true"}, {"up"}} {
		if d := s.Run(args...); d.Code != map[string]int{"run": 125, "up": 4}[args[0]] || !strings.Contains(d.Err, "a worker may have written that (B8)") {
			t.Errorf("%v: exit code %d\n%s", args, d.Code, d.Err)
		}
	}
	if again := left(); len(again) != 1 {
		t.Errorf("kept in mind: %v", again)
	}
	s.Expect(0, append(open, "true")...) // it obeys no file
	s.Write("workshop.yaml", runFile)
	s.Expect(0, "-p", filepath.Base(kept[0]), "down", "--accept-watched")
	s.Expect(0, "run", "two", "--", "true")
	if l := left(); l != nil {
		t.Errorf("left: %v", l)
	}
}

func TestRunKilled(t *testing.T) {
	s, left := runScenario(t, "a run that was killed is removed by the next one")
	for _, begun := range []bool{true, false} {
		cmd := s.Command(t.Context(), "run", "one", "--", "sh", "-c", "touch src/began; exec sleep 600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the run to begin", func() bool {
			_, err := os.Stat(filepath.Join(s.Dir, "src/began"))
			return err == nil || !begun && len(left()) > 0
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		notes := left()
		if len(notes) == 0 {
			t.Fatal("nothing is noted of a killed run")
		}
		if !scenario.DockerAPI() { // there its command alone has ended
			s.Eventually("its supervisor to end", func() bool { return !supervised(t, filepath.Base(notes[0])) })
		}
		s.Expect(0, "run", "two", "--", "true")
		if l := append(left(), leftOf(s, notes)...); l != nil {
			t.Errorf("left: %v", l)
		}
		_ = os.Remove(filepath.Join(s.Dir, "src/began"))
	}
}

func TestB28_RunHints(t *testing.T) {
	s, _ := runScenario(t, "what is refused to a run names what allows it to a run")
	for _, tt := range []struct {
		args []string
		line string
		want string
	}{
		{onEngine("--no-file", "--allow", "allowed.example.org"), "curl -sSf http://denied.example.org", "the guard refused denied.example.org:80; to allow it: `workshop run --allow denied.example.org`"},
		{onEngine("--no-file"), "curl -sSf http://denied.example.org", "the run has no network; name what it needs: `workshop run --allow HOST`"},
		{onEngine("--no-file"), "touch x", "/workspace is read-only in this run; to let it write there: `workshop run --rw .`"},
		{[]string{"run", "one"}, "curl -sSf http://denied.example.org", "a run gets no more than the file grants: add to network.allow in workshop.yaml:\n  - denied.example.org"},
	} {
		if d := s.Run(append(tt.args, "--", "sh", "-c", tt.line)...); d.Code == 0 || !strings.Contains(d.Err, "hint: ") || !strings.Contains(d.Err, tt.want) {
			t.Errorf("%v: exit code %d, want %q in\n%s", tt.args, d.Code, tt.want, d.Err)
		}
	}
}

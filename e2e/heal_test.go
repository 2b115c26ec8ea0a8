//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// killPoints are the calls after which a command is killed: some of all, evenly,
// or with WORKSHOP_KILL=all every one.
func killPoints(calls, some int) (at []int) {
	if os.Getenv("WORKSHOP_KILL") == "all" {
		some = calls
	}
	some = min(some, calls)
	for i := range some {
		at = append(at, 1+(2*i+1)*calls/(2*some))
	}
	return at
}

// TestKilledAnywhere: strace shows each call by which a command changes
// something, and the command is killed after one of them.
func TestKilledAnywhere(t *testing.T) {
	s := scenario.New(t, "restricted", "wherever a command is killed, one up repairs it, and one down removes it")
	s.Env = append(s.Env, "WORKSHOP_VERBOSE=true")
	file := strings.Replace(s.Read("workshop.yaml"), "image: host", `image: host
    ports: ["`+freePort(t)+`:8080"]`, 1)
	changed := strings.ReplaceAll(file, "image: host", "image: host\n    resources: {memory: 512M}")
	other := strings.ReplaceAll(file, "ssh.example.org:22", "ssh.example.org:2222")
	up := func() { s.Write("workshop.yaml", file); s.Up() }
	healed := func(t *testing.T, n int, heals string) {
		began := time.Now()
		d := s.Run(heals)
		if d.Code != 0 {
			t.Errorf("killed after %d calls: %s: exit code %d\n%s", n, heals, d.Code, d.Err)
		} else if strings.Contains(d.Err, "looking again") {
			t.Logf("killed after %d calls: %s looked again (%v)\n%s", n, heals, time.Since(began), d.Err)
		}
		if heals == "down" {
			if l := left(s); l != nil {
				t.Errorf("killed after %d calls: down left %v", n, l)
			}
		} else if d := s.Run("exec", "worker", "--", "true"); d.Code != 0 {
			t.Errorf("killed after %d calls, and up: exec: exit code %d\n%s", n, d.Code, d.Err)
		}
	}
	for _, c := range []struct {
		name    string
		prepare func()
		killed  string
		some    int
	}{
		{"up", func() { s.Expect(0, "down") }, "up", 8},
		{"up of a change", func() { up(); s.Write("workshop.yaml", changed) }, "up", 4},
		{"up of a line", func() { up(); s.Write("workshop.yaml", other) }, "up", 3},
		{"down", up, "down", 4},
		{"restart", up, "restart", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			up() // with it what is made once for all: images
			c.prepare()
			calls := s.KilledAfter(0, c.killed)
			// On Docker each takes seconds, and TestLateCalls has what it is about; who runs
			// the namespace engine changes little of it.
			if scenario.TheEngine() != scenario.Namespace {
				c.some = (c.some + 2) / 3
			}
			points := killPoints(calls, c.some)
			t.Logf("%d calls, killed after %v", calls, points)
			for i, n := range points {
				c.prepare()
				s.KilledAfter(n, c.killed)
				healed(t, n, []string{"up", "up", "down"}[i%3])
			}
		})
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down left %v", l)
	}
}

// TestLateCalls: the engine carries out, before the call of a command, the same
// call of one that was killed.
func TestLateCalls(t *testing.T) {
	scenario.OnlyDocker(t, "a daemon that finishes what a client asked for; a supervisor takes such calls in turns")
	for _, call := range []string{"/containers/create[?]name=.*-worker-1$", "/containers/create[?]name=.*-guard-1$", "/networks/create$", "/volumes/create$"} {
		t.Run(call, func(t *testing.T) {
			s := scenario.New(t, "restricted", "what the engine makes for a command that was killed is no failure of the next one")
			var once sync.Once
			late := regexp.MustCompile(call)
			s.Env = append(s.Env, "WORKSHOP_VERBOSE=true", "DOCKER_HOST="+engineBehind(s, func(proxy *httputil.ReverseProxy) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if late.MatchString(r.URL.RequestURI()) {
						once.Do(func() {
							body, _ := io.ReadAll(r.Body)
							// Two at the same moment pass the engine's check.
							body = bytes.Replace(body, []byte(`"CheckDuplicate":true`), []byte(`"CheckDuplicate":null`), 1)
							again := r.Clone(r.Context())
							again.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
							proxy.ServeHTTP(httptest.NewRecorder(), again)
						})
					}
					proxy.ServeHTTP(w, r)
				})
			}))
			d := s.Up()
			if want := !strings.Contains(call, "volumes"); strings.Contains(d.Err, "looking again") != want {
				t.Errorf("it looked again: want %v\n%s", want, d.Err)
			}
			s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
			s.Expect(0, "down")
			if l := left(s); l != nil {
				t.Errorf("down left %v", l)
			}
		})
	}
}

// TestFailedUp: what an up that fails has made is removed, and what was there stays.
func TestFailedUp(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "an up that fails leaves what was there before: nothing, or what ran")
	port := freePort(t)
	file := strings.NewReplacer("- ./ca.pem:/ca.pem", "- ./ca.pem:/ca.pem\n      - ./locked:/locked:rw",
		"- worker", `- {name: worker, container: {mounts: ["./ca.pem:/ca.pem"]}}`).Replace(s.Read("workshop.yaml"))
	ports := strings.Replace(file, "image: host", `image: host
    ports: ["`+port+`:8080"]`, 1)
	// A gate tries whether its worker can write to what is mounted rw.
	s.Write("locked/file", "")
	locked := filepath.Join(s.Dir, "locked")
	if err := errors.Join(syscall.Mount(locked, locked, "", syscall.MS_BIND, ""), syscall.Mount("", locked, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(locked, syscall.MNT_DETACH) })
	failing := file + "    - second\n"
	taken, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s.Write("workers/second.md", strings.Replace(s.Read("workers/worker.md"), "name: worker", "name: second", 1))
	slow := s.Command(t.Context(), "up", "-v")
	for _, c := range []struct {
		name, file string
		code       int
		fail       func() scenario.Done
		says       []string
	}{
		{"a port is taken", ports, 5, func() scenario.Done { return s.Run("up") }, []string{"127.0.0.1:" + port + ", which worker publishes, is taken"}},
		{"a gate fails", failing, 1, func() scenario.Done { return s.Run("up") }, []string{"second", "/locked", "the end of its log"}},
		{"its time is over", file, 1, func() scenario.Done { return s.Run("up", "--wait-timeout", "1ns") }, []string{"not ready after 1ns"}},
		{"ctrl-C", file, 130, func() scenario.Done { return interrupted(s, slow) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Write("workshop.yaml", c.file)
			d := c.fail()
			if d.Code != c.code {
				t.Errorf("exit code %d, want %d\n%s", d.Code, c.code, d.Err)
			}
			says(s, d, c.says...)
			if l := left(s); l != nil {
				t.Errorf("it left %v\n%s", l, d.Err)
			}
		})
	}
	s.Write("workshop.yaml", file)
	s.Up()
	before := lives(s)
	for name, text := range map[string]string{"a port is taken": ports, "a gate fails": failing} {
		t.Run("while it runs: "+name, func(t *testing.T) {
			s.Write("workshop.yaml", text)
			d := s.Run("up")
			if d.Code == 0 || strings.Contains(d.Err, "workshop down") {
				t.Errorf("exit code %d\n%s", d.Code, d.Err)
			}
			goOn(s, before, "worker", "room", "guard")
			if c := s.Containers(); len(c) != 3 {
				t.Errorf("there are %v\n%s", c, d.Err)
			}
		})
	}
	s.Write("workshop.yaml", file)
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}

// interrupted is an up that gets a ctrl-C when it has made its room.
func interrupted(s *scenario.Scenario, cmd *exec.Cmd) scenario.Done {
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); said += lines.Text() + "\n" {
		if strings.HasSuffix(lines.Text(), "-room-1 created") {
			_ = cmd.Process.Signal(syscall.SIGINT)
		}
	}
	_ = cmd.Wait()
	return scenario.Done{Code: cmd.ProcessState.ExitCode(), Err: said}
}

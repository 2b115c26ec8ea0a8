//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestB06_SignalsStayInside(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker that sends signals to all and everybody ends its own processes, and nothing else of the same user")
	s.Up()
	before := lives(s)
	// On this machine, of the same user.
	other := exec.Command("setpriv", "--reuid", fmt.Sprint(scenario.UID), "--regid", fmt.Sprint(scenario.UID), "--clear-groups", "sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	t.Cleanup(func() { _ = other.Process.Kill(); <-ended })
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "sleep 8001 >/dev/null 2>&1 & echo started")
	s.Run("exec", "worker", "--", "sh", "-c", "kill -KILL -1")
	gone(s, "sleep 8001") // the control: it reached what it may reach
	for _, pid := range []int{other.Process.Pid, s.Pid("guard"), s.Pid("room"), os.Getpid()} {
		s.Sees("worker", fmt.Sprintf("signal SIGKILL %d -> ESRCH", pid))
	}
	select {
	case err := <-ended:
		t.Errorf("a process of this machine was ended: %v", err)
		ended <- err
	default:
	}
	goOn(s, before, "worker", "room", "guard")
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}

// descriptor is what a process of a worker may have open; all else leads to
// something that is not in it. Its own cpu limit is what Go's run time reads.
var descriptor = regexp.MustCompile(`^(/sys/fs/cgroup/([a-z,]+/)?cpu\.[a-z_]+$|pipe:|socket:|anon_inode:\[?(eventpoll|eventfd|inotify|pidfd|signalfd|timerfd)|/dev/null$|/dev/pts/|pidfd:)`)

func TestB06_NoDescriptorLeaks(t *testing.T) {
	s := scenario.New(t, "tools", "no process of a worker, its first, an exec's or a tool's, has a descriptor that leads out of it")
	s = by(s)
	s.Write("workers/builder.md", "---\nname: builder\ntools: Bash\n---\nx\n")
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	up := s.Program(t.Context(), s.Workshop(), "up")
	up.ExtraFiles = slices.Repeat([]*os.File{root}, 20) // as somebody left it open
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	c := newRPC(t, s, "--approve-all", "builder")
	text, _ := c.call("shell", `{"argv": ["ls", "-l", "/proc/self/fd"]}`)
	for who, text := range map[string]string{"an exec": s.Expect(0, "exec", "--quiet", "builder", "--", "ls", "-l", "/proc/self/fd").Out, "a tool": text} {
		open := regexp.MustCompile(`\b(\d+) -(?:>|\\u003e) ([^\s"\\]+)`).FindAllStringSubmatch(text, -1)
		if len(open) != 4 {
			t.Errorf("%s: %s", who, text)
		}
		for _, m := range open {
			if m[1] > "2" && !strings.HasPrefix(m[2], "/proc/") { // what ls itself looks into
				t.Errorf("%s has descriptor %s: %s", who, m[1], m[2])
			}
		}
	}
	for _, service := range []string{"builder", "room", "guard"} {
		for _, pid := range s.Processes(service) {
			links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			if err != nil {
				t.Fatal(err)
			}
			for _, link := range links {
				if to, ok := leadsOut(t, service, link); ok {
					t.Errorf("%s: process %d has %s: %s", service, pid, filepath.Base(link), to)
				}
			}
		}
	}
}

// leadsOut tells whether a descriptor, /proc/PID/fd/FD, is of something outside of
// its process's own mounts, and what of. The path that it shows doesn't say: the
// kernel gives it as it is seen from there. The number of the mount does
// (proc_pid_fdinfo(5), proc_pid_mountinfo(5)).
func leadsOut(t *testing.T, service, link string) (to string, ok bool) {
	to, err := os.Readlink(link)
	if err != nil || descriptor.MatchString(to) {
		return "", false
	}
	if to == "/memfd:workshop-kept (deleted)" { // what the room holds for the guard
		return to, service != "room" && service != "guard"
	}
	dir := filepath.Dir(filepath.Dir(link))
	info, err := os.ReadFile(filepath.Join(dir, "fdinfo", filepath.Base(link)))
	if err != nil { // it was closed
		return "", false
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if err != nil { // the process ended
		return "", false
	}
	if now, err := os.Readlink(link); err != nil || now != to { // another one took its number
		return "", false
	}
	id := regexp.MustCompile(`(?m)^mnt_id:\s*(\d+)$`).FindSubmatch(info)
	if id == nil {
		t.Fatalf("fdinfo of %s: %s", link, info)
	}
	return to, !regexp.MustCompile(`(?m)^` + string(id[1]) + ` `).Match(mounts)
}

func TestB43_NothingIsTypedOnTheHost(t *testing.T) {
	s, in, outside := escapes(t, "a worker types into its own terminal, and never into the one of the person who brought it up and runs commands in it")
	typed := func(script string, args ...string) (seen, after string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := s.Program(ctx, "/bin/sh", append([]string{"-c", script + `; echo; echo "the program" ended; timeout --foreground 1 cat; echo; echo "the person" ended`}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		screen, _ := onTerminal(t, cmd)
		s.Eventually("the person's command ends", func() bool { return strings.Contains(screen(), "the person ended") })
		_ = cmd.Wait()
		seen, after, ok := strings.Cut(screen(), "the program ended")
		if !ok {
			t.Fatalf("on the screen:\n%s", screen())
		}
		return seen, after
	}
	const try = `type "planted\n"`
	if scenario.TheEngine() != scenario.Rootless { // an ordinary user may not, since Linux 6.2
		if _, after := typed(`"$0" probe "$1"`, outside, try); !strings.Contains(after, "planted") {
			t.Errorf("control: nothing was typed on this machine's terminal:\n%s", after)
		}
	}
	// A terminal is a session's: who could have it, is started in that.
	for _, how := range []struct{ flags, seen string }{{"", "ok"}, {"--no-tty </dev/null", "ENXIO"}} {
		seen, after := typed(`"$0" up; "$0" exec `+how.flags+` worker -- "$1" probe "$2"`, s.Workshop(), in, try)
		if !strings.Contains(seen, `"seen":"`+how.seen+`"`) || strings.Contains(after, "planted") {
			t.Errorf("exec %s: in the worker, and on the terminal of the host:\n%s\n%s", how.flags, seen, after)
		}
		s.Expect(0, "down")
	}
}

// swapped is a workshop in which one worker may write above the source of
// another one's mount.
func swapped() map[string]string {
	return map[string]string{
		"workshop.yaml": `workshop:
  name: swapped
  container: {image: host, network: none, mounts: ["./out:/out:rw"]}
  workers:
    - name: swapper
      container: {mounts: ["./out:/out:rw"]}
    - name: victim
      container: {mounts: ["./out/sub:/in:rw"]}
`,
		"workers/swapper.md": "---\nname: swapper\ntools: []\n---\nx\n",
		"workers/victim.md":  "---\nname: victim\ntools: []\n---\nx\n",
		"out/sub/mine":       "mine\n",
		"secret/canary":      "canary\n",
	}
}

func TestB07_SourcesArePinned(t *testing.T) {
	s := scenario.At(t, "a worker can't swap a directory of its mount that another worker has for a source", swapped())
	s.Up()
	s.Sees("swapper", "rename /out/sub /out/kept -> EBUSY", "remove /out/sub -> EBUSY|ENOTEMPTY", "mkdir /out/other -> ok", "write /out/sub/more -> ok|EROFS")
	s.Sees("victim", "list /in -> mine")
}

func TestB07_SourcesThatAreSwapped(t *testing.T) {
	scenario.OnlyNamespace(t, "Docker follows the links of a bind's source itself, after everybody has looked")
	s := scenario.At(t, "a source that is swapped for a link by somebody on this machine while its worker starts is never followed", swapped())
	s.Up("victim")
	s.Sees("victim", "list /in -> mine")
	at := func(name string) string { return filepath.Join(s.Dir, name) }
	done, swapping := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				swapping <- n
				return
			default:
			}
			if os.Rename(at("out/sub"), at("out/kept")) == nil && os.Symlink(at("secret"), at("out/sub")) == nil {
				n++
			}
			time.Sleep(3 * time.Millisecond) // a quarter of the time: up looks three times before it opens
			_ = os.Remove(at("out/sub"))
			_ = os.Rename(at("out/kept"), at("out/sub"))
			time.Sleep(time.Duration(n%20) * time.Millisecond)
		}
	}()
	started, refused := 0, 0
	for end := time.Now().Add(20 * time.Second); (started+refused < 40 || started == 0 || refused == 0) && time.Now().Before(end); {
		if _, ok := s.Containers()["victim"]; ok {
			s.Remove("victim")
		}
		if s.Run("up", "--wait-timeout", "10s", "victim").Code != 0 {
			refused++
			continue
		}
		started++
		// A swap ends the victim, whose mount is lost then.
		if d := s.Run("exec", "victim", "--", "ls", "/in"); strings.Contains(d.Out, "canary") {
			t.Errorf("the victim has %s at /in", d.Out)
			break
		}
	}
	close(done)
	n := <-swapping
	t.Logf("%d swaps, %d starts, %d refused", n, started, refused)
	if n == 0 || started == 0 || refused == 0 {
		t.Error("that shows nothing")
	}
}

func TestB21_SupervisorKilled(t *testing.T) {
	scenario.OnlyNamespace(t, "Docker has a daemon; TestB21_EngineRestarted")
	s := scenario.New(t, "restricted", "a supervisor that is killed takes everything with it at once, nothing gets out, the next command says so and up repairs it")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "setsid sleep 9001 >/dev/null 2>&1 & echo started")
	s.Internet.Reset()
	stop := attacker(s)
	pids := slices.Concat(s.Processes("worker"), s.Processes("room"), s.Processes("guard"))
	killed := testutil.Now()
	if err := syscall.Kill(s.Supervisor(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Eventually("all of its processes are gone", func() bool { return !slices.ContainsFunc(pids, scenario.Lives) })
	if took := testutil.Since(killed); len(pids) < 4 || took > scenario.FailFast {
		t.Errorf("%d processes ended within %v", len(pids), took)
	}
	// Others, which the supervisor never knew, end with their namespaces.
	s.Eventually("no process is left", func() bool {
		return !slices.ContainsFunc(s.Leftovers(), func(l string) bool { return strings.HasPrefix(l, "process ") })
	})
	time.Sleep(500 * time.Millisecond)
	stop()
	silent(s, testnet.Evil)
	if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "workshop up") {
		t.Errorf("exec: exit code %d\n%s", d.Code, d.Err)
	}
	if d := s.Run("ps"); strings.Contains(d.Out, "running") {
		t.Errorf("ps says that something runs:\n%s", d.Out)
	}
	s.Up()
	s.Sees("worker", append([]string{"http https://allowed.example.org/ ca=/ca.pem -> 200", "tcp ssh.example.org:22 -> data"}, closedAtOnce...)...)
	silent(s, testnet.Evil)
	if err := syscall.Kill(s.Supervisor(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Expect(0, "down")
	if l := left(s); l != nil {
		t.Errorf("down after a kill left %v", l)
	}
}

package docker

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// isWorker is set where the test is the main process of a worker, in a mount namespace of its own.
const isWorker = "WORKSHOP_TEST_RECALLED"

// TestRecall: a worker is reached without the engine as long as its main process and its
// directory are the ones that were noted.
func TestRecall(t *testing.T) {
	if dir, ok := os.LookupEnv(isWorker); ok {
		recallOfItself(t, dir)
		return
	}
	testutil.Require(t, os.Geteuid() == 0, "mounts a directory: run as root")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRecall$", "-test.v")
	cmd.Env = append(os.Environ(), isWorker+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func recallOfItself(t *testing.T, home string) {
	runtime := filepath.Join(home, "p-01234567")
	dir := compose.DialInPath(compose.Facts{Local: true, RuntimeDir: runtime}, "one")
	above := filepath.Dir(compose.DialInDir)
	forged := filepath.Join(home, "q-01234567", filepath.Base(dir))
	if err := errors.Join(os.Mkdir(filepath.Dir(forged), 0o700), os.Mkdir(forged, 0o755), os.Mkdir(runtime, 0o700), os.Mkdir(dir, 0o755), os.MkdirAll(above, 0o755), syscall.Mount("tmpfs", above, "tmpfs", 0, ""),
		os.Mkdir(compose.DialInDir, 0o755), syscall.Mount(dir, compose.DialInDir, "", syscall.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	go func() { // as PID 1 of a worker
		kept := map[string]net.Conn{}
		for {
			sockets, _ := filepath.Glob(filepath.Join(home, "?-01234567", filepath.Base(dir), "*"+dialin.Suffix))
			for _, path := range sockets {
				if c, err := net.Dial("unix", path); err == nil {
					kept[path] = c
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	e, err := New(t.Context(), Options{
		Compared: engine.Compared{Dir: t.TempDir()},
		Lookup:   func(name string) (string, bool) { return "unix:///nonexistent", name == "DOCKER_HOST" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const project, start = "p", "this start"
	if err := e.opts.Compared.Keep(project, "one", start); err != nil {
		t.Fatal(err)
	}
	w := worker{pid: os.Getpid(), user: "1000:1000", start: start, dialIn: dir, container: engine.Container{Service: "one", Directory: "/project"}}
	e.remember(project, w)
	noted := e.opts.Compared.Process(project, "one")
	if noted == nil {
		t.Fatal("nothing is noted")
	}
	for _, tt := range []struct {
		name      string
		change    func(*engine.Process)
		dir, user string
		want      bool
	}{
		{"as noted", nil, "/project", "", true},
		{"its user", nil, "/project", "1000", true},
		{"of any directory", nil, "", "", true},
		{"of another directory", nil, "/elsewhere", "", false},
		{"another user", nil, "/project", "1001", false},
		{"another process", func(p *engine.Process) { p.PID = os.Getppid() }, "/project", "", false},
		{"a later process of that number", func(p *engine.Process) { p.Start = "1" + p.Start }, "/project", "", false},
		{"before a reboot", func(p *engine.Process) { p.Start, _, _ = strings.Cut(p.Start, " ") }, "/project", "", false},
		{"a directory that `up` didn't make", func(p *engine.Process) { p.DialIn = forged }, "/project", "", false},
		{"the directory of another worker", func(p *engine.Process) { p.DialIn = strings.Replace(p.DialIn, "one", "two", 1) }, "/project", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := *noted
			if tt.change != nil {
				tt.change(&p)
			}
			if err := e.opts.Compared.KeepProcess(project, "one", start, p); err != nil {
				t.Fatal(err)
			}
			conn := e.recall(t.Context(), project, "one", tt.dir, tt.user)
			if got := conn != nil; got != tt.want {
				t.Errorf("connected: %v, want %v", got, tt.want)
			}
			if conn != nil {
				conn.Close()
			}
		})
	}
	// What was not compared, or was started again, has no note of a process.
	w.start = "another start"
	e.remember(project, w)
	if e.opts.Compared.Has(project, "one", w.start) {
		t.Error("a start that was not compared is noted")
	}
	if err := e.opts.Compared.Keep(project, "one", w.start); err != nil {
		t.Fatal(err)
	}
	if p := e.opts.Compared.Process(project, "one"); p != nil {
		t.Errorf("of another start: %+v", p)
	}
}

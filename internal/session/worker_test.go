package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/toolbox"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// The test binary is also PID 1 of a worker, its toolbox, and the MCP servers
// there.
const (
	roleVariable   = "WORKSHOP_SESSION_TEST_ROLE"
	socketVariable = "WORKSHOP_SESSION_TEST_SOCKET"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "worker":
		fmt.Fprintln(os.Stderr, "worker:", beWorker())
		os.Exit(1)
	case "tools":
		os.Exit(toolbox.Main(nil, os.Stdin, os.Stdout, os.Stderr))
	default:
		beServer(role)
	}
}

// beWorker is PID 1: it starts a session for each connection, as the gate does
// for the door, and reaps.
func beWorker() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	l, err := net.Listen("unix", os.Getenv(socketVariable))
	if err != nil {
		return err
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			for {
				if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		}
	}()
	os.Setenv(roleVariable, "tools")
	fmt.Println("READY")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		f, err := c.(*net.UnixConn).File()
		if err != nil {
			return err
		}
		c.Close()
		_, err = os.StartProcess("/proc/self/exe", []string{"workshop-init", "tools"}, &os.ProcAttr{
			Files: []*os.File{f, f, nil}, // it tells of each cut connection there
		})
		f.Close()
		if err != nil {
			return err
		}
	}
}

// aWorker is a worker whose toolbox is real, in namespaces of its own.
type aWorker struct {
	t      *testing.T
	dir    string // its working directory
	socket string
	grant  tool.Grant

	mu    sync.Mutex
	cmd   *exec.Cmd
	dials atomic.Int32
	// wrap may change a new connection.
	wrap func(io.ReadWriteCloser) io.ReadWriteCloser
}

func startWorker(t *testing.T, g tool.Grant) *aWorker {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "namespaces need root")
	short, err := os.MkdirTemp("", "ws") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	w := &aWorker{t: t, dir: t.TempDir(), socket: filepath.Join(short, "s"), grant: g}
	w.start()
	t.Cleanup(w.stop)
	return w
}

func (w *aWorker) start() {
	w.t.Helper()
	g, err := json.Marshal(w.grant)
	if err != nil {
		w.t.Fatal(err)
	}
	os.Remove(w.socket)
	cmd := exec.Command("/proc/self/exe", "gate", "--tools", string(g))
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), roleVariable+"=worker", socketVariable+"="+w.socket, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "READY\n" {
		w.t.Fatalf("the worker said %q, %v", line, err)
	}
	w.mu.Lock()
	w.cmd = cmd
	w.mu.Unlock()
}

func (w *aWorker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

func (w *aWorker) dial(ctx context.Context, _ string) (io.ReadWriteCloser, error) {
	w.dials.Add(1)
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", w.socket)
	if err != nil {
		return nil, err
	}
	if w.wrap != nil {
		return w.wrap(c), nil
	}
	return c, nil
}

func (w *aWorker) path(name string) string { return filepath.Join(w.dir, name) }

// wait waits until a file of the worker ends with a text.
func (w *aWorker) wait(name, end string) {
	w.t.Helper()
	for begun := time.Now(); !strings.HasSuffix(w.file(name), end) || w.file(name) == ""; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			w.t.Errorf("%s doesn't come", name)
			return
		}
	}
}

// file reads a file of the worker; empty where there is none.
func (w *aWorker) file(name string) string {
	b, _ := os.ReadFile(w.path(name))
	return string(b)
}

// aWorkshop loads a workshop with workers whose files have the given keys.
func aWorkshop(t *testing.T, extra string, workers ...string) *workshop.Workshop {
	t.Helper()
	fsys := fstest.MapFS{}
	list := ""
	for i := 0; i < len(workers); i += 2 {
		list += "    - " + workers[i] + "\n"
		fsys["workers/"+workers[i]+".md"] = &fstest.MapFile{Data: []byte("---\nname: " + workers[i] + "\n" + workers[i+1] + "\n---\nDo it well.\n")}
	}
	fsys["workshop.yaml"] = &fstest.MapFile{Data: []byte("workshop:\n  name: t\n  container:\n    image: i:1\n    resources: {timeout: 1m}\n  workers:\n" + list + extra)}
	w, problems := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{Home: "/home/me"})
	if w == nil {
		t.Fatal(problems)
	}
	return w
}

// grantOf is what the compile gives a worker.
func grantOf(w *workshop.Workshop, name string) tool.Grant {
	g := tool.Grant{Worker: name, TimeoutMS: tool.Millis(time.Minute.Milliseconds()), MCP: map[string]tool.Server{}}
	for i := range w.Workers {
		if w.Workers[i].Name == name {
			g.Tools = w.Workers[i].Definition.Offers()
		}
	}
	for _, m := range w.MCP {
		g.MCP[m.Name] = tool.Server{Command: m.Command, Env: m.Env, Secrets: m.Secrets}
	}
	return g
}

// yes lets everything pass that isn't denied.
func yes() *approval.Gate { return &approval.Gate{Policy: approval.Policy{ApproveAll: true}} }

func openHost(t *testing.T, c Config, worker string) *Host {
	t.Helper()
	if c.Gate == nil {
		c.Gate = yes()
	}
	if c.Warn == nil {
		c.Warn = func(text string) { t.Log("warning:", text) }
	}
	h, err := Open(c, worker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// one is a Host of the worker "w" with these keys, and its worker.
func one(t *testing.T, keys string) (*Host, *aWorker) {
	t.Helper()
	ws := aWorkshop(t, "", "w", keys)
	w := startWorker(t, grantOf(ws, "w"))
	return openHost(t, Config{Workshop: ws, Dial: w.dial}, "w"), w
}

// args makes JSON of pairs.
func args(pairs ...any) json.RawMessage {
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// textOf joins the texts of a result.
func textOf(r *Result) string {
	out := ""
	for _, b := range r.Content {
		var block struct{ Text string }
		json.Unmarshal(b, &block)
		out += block.Text
	}
	return out
}

// settle waits until no session runs any more.
func (w *aWorker) settle(string) {
	w.t.Helper()
	w.mu.Lock()
	pid := w.cmd.Process.Pid
	w.mu.Unlock()
	for begun := time.Now(); len(childrenOf(w.t, pid)) > 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			w.t.Fatal("a session doesn't end")
		}
	}
}

// nobody answers.
func nobody(context.Context, string) (io.ReadWriteCloser, error) { return nil, io.EOF }

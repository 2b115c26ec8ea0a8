//go:build linux

package scenario

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// alone is set in the test program that runs in namespaces of its own.
const alone = "WORKSHOP_E2E_ALONE"

// Alone runs the calling test once more as a process in network and mount
// namespaces of its own, and reports whether this is that process; the other one
// has the result already. A second engine needs it: it would change the netfilter
// rules of the first.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(alone) != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("loopback: %v %s", err, out)
		}
		return true
	}
	l := TheLab(t)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+t.Name()+"$", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), alone+"=1", "WORKSHOP_BIN="+l.Bin, "WORKSHOP_E2E=require")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in namespaces of its own: %v", err)
	}
	return false
}

// OwnEngine is an engine that a test may stop: own socket, data, containerd.
type OwnEngine struct {
	t    *testing.T
	dir  string
	argv []string
	env  []string // nil: this process's
	cmd  *exec.Cmd
	done chan struct{}
}

// NewEngine starts one, for a test that runs [Alone], and makes it the engine
// of everything that the test does. It ends with the test, with all in it.
func NewEngine(t *testing.T, args ...string) *OwnEngine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-engine.")
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	e := &OwnEngine{t: t, dir: dir, argv: append([]string{
		"dockerd", "--host", "unix://" + at("docker.sock"), "--data-root", at("data"), "--exec-root", at("exec"), "--pidfile", at("docker.pid"),
		"--default-address-pool", "base=10.214.0.0/17,size=24", "--bip", "10.214.255.1/24", "--exec-opt", "native.cgroupdriver=cgroupfs",
	}, args...)}
	t.Setenv("DOCKER_HOST", "unix://"+at("docker.sock"))
	t.Cleanup(e.remove)
	e.Start()
	return e
}

// Replace starts another engine at the same socket, after [OwnEngine.Stop]: it has nothing
// of the first one.
func (e *OwnEngine) Replace() {
	e.t.Helper()
	for i, arg := range e.argv {
		if arg == "--data-root" {
			e.argv[i+1] += ".other"
		}
	}
	e.Start()
}

// Host is its DOCKER_HOST.
func (e *OwnEngine) Host() string { return "unix://" + filepath.Join(e.dir, "docker.sock") }

// Start starts the engine again after [OwnEngine.Stop].
func (e *OwnEngine) Start() {
	e.t.Helper()
	at := func(name string) string { return filepath.Join(e.dir, name) }
	log, err := os.OpenFile(at("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer log.Close()
	_ = os.Remove(at("docker.pid")) // of one that was killed
	e.cmd = exec.Command(e.argv[0], e.argv[1:]...)
	e.cmd.Env = e.env
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(e.cmd, e.done)
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if e.answers() {
			return
		}
		select {
		case <-e.done:
			end = time.Now()
		default:
		}
	}
	b, _ := os.ReadFile(at("log"))
	e.t.Fatalf("dockerd does not start:\n%s", b[max(0, len(b)-3000):])
}

func (e *OwnEngine) client() (*client.Client, error) {
	return client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
}

func (e *OwnEngine) answers() bool {
	c, err := e.client()
	if err != nil {
		return false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = c.Ping(ctx)
	return err == nil
}

// Stop ends the engine: SIGTERM as at a shutdown, SIGKILL as in a crash.
func (e *OwnEngine) Stop(signal syscall.Signal) {
	e.t.Helper()
	_ = e.cmd.Process.Signal(signal)
	select {
	case <-e.done:
	case <-time.After(60 * time.Second):
		_ = e.cmd.Process.Kill()
		e.t.Fatalf("dockerd does not end after %v", signal)
	}
	// Its containerd dies with it. Where nobody reaps orphans, dockerd would
	// take the zombie for one that runs.
	file := filepath.Join(e.dir, "exec/containerd/containerd.pid")
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	pid := strings.TrimSpace(string(b))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + pid + "/stat")
		if _, state, ok := strings.Cut(string(status), ") "); err != nil || ok && state[0] == 'Z' {
			_ = os.Remove(file)
			return
		}
	}
	e.t.Fatalf("containerd %s does not end with its dockerd", pid)
}

// remove ends the engine and what it started, by their process IDs.
func (e *OwnEngine) remove() {
	if c, err := e.client(); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		all, _ := c.ContainerList(ctx, container.ListOptions{All: true})
		for _, k := range all {
			_ = c.ContainerRemove(ctx, k.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}
		cancel()
		c.Close()
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.done:
	case <-time.After(30 * time.Second):
		_ = e.cmd.Process.Kill()
		<-e.done
	}
	e.killRest()
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil {
		var below []string
		for line := range strings.Lines(string(mounts)) {
			if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], e.dir+"/") {
				below = append(below, f[1])
			}
		}
		slices.Sort(below)
		for _, m := range slices.Backward(below) {
			_ = syscall.Unmount(m, syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Logf("left behind: %v", err)
	}
}

// killRest ends what outlives a dockerd that was killed or didn't start again:
// containerd and shims, known by the directory on their command line, and the
// containers' main processes, which are the shims' children.
func (e *OwnEngine) killRest() {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(filepath.Base(string(b[:max(0, bytes.IndexByte(b, 0))])), "containerd") || !bytes.Contains(b, []byte(e.dir+"/")) {
			continue
		}
		dir := filepath.Dir(file)
		lists, _ := filepath.Glob(dir + "/task/*/children")
		for _, list := range lists {
			children, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(children)) {
				kill(child)
			}
		}
		kill(filepath.Base(dir))
	}
}

func kill(pid string) {
	if n, err := strconv.Atoi(pid); err == nil && n > 1 {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

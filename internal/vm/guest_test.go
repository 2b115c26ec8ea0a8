//go:build linux && amd64

package vm_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/dev/testutil"
	containerspec "github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/seccomp"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/files"
	"github.com/llmdo/workshop/internal/vm/monitor"
	"github.com/llmdo/workshop/internal/vm/root"
)

const guestUID = 65532

// guestSpec is a worker on an image with busybox, with a source that it may write to and one
// that it may not.
func guestSpec(t *testing.T, args ...string) *config.Guest {
	t.Helper()
	filter, err := seccomp.Filter(compose.SeccompProfile(), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	return &config.Guest{Shares: []string{"rw", "ro"}, Container: containerspec.Container{
		Version: containerspec.Version, Name: "test-worker-1", Service: "worker", Role: containerspec.Worker, Hostname: "in-a-machine",
		Process: containerspec.Process{Args: append([]string{"/opt/workshop/workshop-init", "gate", "--workdir", "/work"}, args...),
			Env: []string{"PATH=/bin", "GREETING=hello", "HOME=/tmp"}, Cwd: "/", UID: guestUID, GID: guestUID},
		Root: containerspec.Root{Dir: config.RootDir},
		Mounts: []containerspec.Mount{
			{Type: containerspec.Tmpfs, Target: "/tmp", Size: 256 << 20, UID: guestUID, GID: guestUID},
			{Type: containerspec.Bind, Source: config.SharesDir + "/rw/0", Target: "/work"},
			{Type: containerspec.Bind, Source: config.SharesDir + "/ro/0", Target: "/docs", ReadOnly: true},
			{Type: containerspec.Bind, Source: config.SharesDir + "/ro/1", Target: "/work/settings", ReadOnly: true},
			{Type: containerspec.Bind, Source: config.Init, Target: "/opt/workshop/workshop-init", ReadOnly: true},
		},
		Files:    []containerspec.File{{Path: "/etc/hostname", Data: "in-a-machine\n", Mode: 0o644}},
		Network:  containerspec.Network{Mode: containerspec.NetJoin, Of: "room-worker"},
		Limits:   containerspec.Limits{Memory: 2 << 30, CPUs: 1, PIDs: 64, Shm: 1 << 20},
		Rlimits:  []containerspec.Rlimit{{Name: "nofile", Soft: 1024, Hard: 1024}},
		Seccomp:  filter,
		Landlock: true, Grace: time.Second,
	}}
}

// busyImage is an image with busybox, made once.
var busyImage = sync.OnceValues(func() (path string, err error) {
	box, err := exec.LookPath("busybox")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "workshop-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	for _, d := range []string{"bin", "etc", "tmp", "work", "docs", "opt"} {
		if err := os.MkdirAll(filepath.Join(tree, d), 0o755); err != nil {
			return "", err
		}
	}
	if err := exec.Command("cp", box, filepath.Join(tree, "bin/busybox")).Run(); err != nil {
		return "", err
	}
	for _, name := range strings.Fields("sh cat id echo pwd hostname touch env sleep head dd ls wc grep kill mount cp stat") {
		if err := os.Symlink("busybox", filepath.Join(tree, "bin", name)); err != nil {
			return "", err
		}
	}
	f, err := os.CreateTemp(theKit.dir, "*.erofs") // which TestMain removes
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Name(), root.Write(context.Background(), f, tree)
})

// guestWorker is a machine with a worker, by its carrier alone.
type guestWorker struct {
	t     *testing.T
	mux   *mux.Mux
	began time.Time
	rw    string // its source that may be written to
	ended chan struct{}
	said  bytes.Buffer // the console, when it ended

	mu      sync.Mutex
	changed chan struct{}
	lines   []string // "1:text" of stdout
}

func (w *guestWorker) message(text []byte) error {
	h, err := carrier.DecodeOf(text, carrier.Ready, carrier.Output)
	if err == nil && h.Kind == carrier.Output {
		w.mu.Lock()
		w.lines = append(w.lines, fmt.Sprintf("%d:%s", h.Stream, h.Line))
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
	return err
}

// bootGuest starts a machine for a worker. change may change it.
func bootGuest(t *testing.T, guest *config.Guest, change func(*monitor.Spec)) *guestWorker {
	t.Helper()
	testutil.Require(t, os.Getuid() == 0, "it needs root")
	_, err := exec.LookPath("busybox")
	testutil.Require(t, err == nil, "install busybox-static")
	s := spec(t, ourInit(t), guest)
	if s.Root, err = busyImage(); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	for d := top; d != "/tmp" && d != "/"; d = filepath.Dir(d) { // the user needs a way to it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := &guestWorker{t: t, rw: filepath.Join(top, "rw/0"), ended: make(chan struct{}), changed: make(chan struct{})}
	for _, d := range []string{w.rw, w.rw + "/settings", top + "/ro/0", top + "/ro/1"} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(top+"/ro/0/text", []byte("read me\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	ends, errs := shares(t, guestUID, files.Mount{Root: filepath.Join(top, "rw")}, files.Mount{Root: filepath.Join(top, "ro"), ReadOnly: true})
	s.Console = true
	s.Shares = []monitor.Share{{Tag: "rw", Socket: ends[0]}, {Tag: "ro", Socket: ends[1]}}
	if change != nil {
		change(&s)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "carrier"), os.NewFile(uintptr(pair[1]), "carrier")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(monitor.Program, monitor.Args(s)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &w.said, &w.said, []*os.File{s.Initramfs, theirs}
	for _, share := range s.Shares {
		cmd.ExtraFiles = append(cmd.ExtraFiles, share.Socket)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.began = time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	for _, share := range s.Shares {
		share.Socket.Close()
	}
	w.mux = mux.New(conn, mux.Config{Streams: carrier.MaxStreams, Message: w.message})
	go func() {
		err := w.mux.Run()
		w.mu.Lock()
		w.lines = append(w.lines, fmt.Sprintf("the carrier ended: %v", err))
		w.mu.Unlock()
	}()
	go func() {
		cmd.Wait()
		close(w.ended)
	}()
	t.Cleanup(func() {
		w.mux.End(nil)
		select {
		case <-w.ended:
		case <-time.After(monitor.PowerOff):
			cmd.Process.Kill()
			<-w.ended
			t.Error("it was killed, and did not power off")
		}
		if t.Failed() {
			t.Logf("it said %q; the file server %q; the console:\n%s", w.lines, errs, &w.said)
		}
	})
	return w
}

// wait waits for a line that begins so, and returns the rest.
func (w *guestWorker) wait(prefix string) string {
	w.t.Helper()
	late := time.After(time.Minute)
	for {
		w.mu.Lock()
		lines, changed := w.lines, w.changed
		w.mu.Unlock()
		for _, line := range lines {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return rest
			}
		}
		select {
		case <-changed:
		case <-w.ended:
			time.Sleep(100 * time.Millisecond) // what it said is read
			select {
			case <-changed:
				continue
			default:
			}
			w.t.Fatalf("it ended without %q", prefix)
		case <-late:
			w.t.Fatalf("no %q", prefix)
		}
	}
}

// ranIn is how a command ended.
type ranIn struct {
	code            int
	out, errs, note string
}

// exec runs a command of the worker's in a session of its own.
func (w *guestWorker) exec(c client.Command) (r ranIn, err error) {
	s, err := w.mux.Open(carrier.Head{Kind: carrier.Session}.Encode())
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr, c.Note = &out, &errs, func(text string) { r.note = text }
	r.code, err = client.Exec(ctx, s, c)
	r.out, r.errs = out.String(), errs.String()
	return r, err
}

// sh runs a line of shell.
func (w *guestWorker) sh(line string) ranIn {
	w.t.Helper()
	r, err := w.exec(client.Command{Argv: []string{"sh", "-c", line}})
	if err != nil {
		w.t.Errorf("%s: %v", line, err)
	}
	return r
}

//go:build linux && amd64

package vm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container"
	containerspec "github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/seccomp"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/vm"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// asSupervisor in the environment makes this program start a container, as the supervisor
// of the namespace engine does; its first argument is workshop-init.
const asSupervisor = "WORKSHOP_TEST_SUPERVISOR"

func init() {
	switch {
	case os.Getenv(asSupervisor) != "":
		os.Exit(supervise())
	case len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == monitor.FilesCommand):
		os.Exit(vm.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// supervise starts the container that it reads, in its network namespace, says its PID on
// descriptor 3, and ends with it, or it with its stdin.
func supervise() int {
	var c containerspec.Container
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
		return 125
	}
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(&c); err != nil {
		return fail(err)
	}
	room, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return fail(err)
	}
	children, ended := &reaper.Reaper{}, make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			children.Reap()
		}
	}()
	p, err := container.Start(children, os.Args[1], &c, container.Options{Stdout: os.Stdout, Stderr: os.Stderr, NetNS: room})
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(os.NewFile(3, "pid"), p.Pid)
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(in.Buffered(), os.Stdin))
		_ = p.Signal(unix.SIGKILL)
	}()
	if status := p.Wait(); status.Signaled() {
		return 128 + int(status.Signal())
	} else {
		return status.ExitStatus()
	}
}

// said is what a process says.
type said struct {
	held sync.Mutex // while it isn't read
	mu   sync.Mutex
	b    bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.held.Lock()
	defer s.held.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// lines are what it said without the report of what its container is.
func (s *said) lines() (all []string) {
	for line := range strings.Lines(s.String()) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "MADE mountinfo=") {
			all = append(all, line)
		}
	}
	return all
}

// worker is a worker's container as the engine makes it, with workshop-vm.
type worker struct {
	*room
	pid            int // of its PID 1
	door, rw, ro   string
	stdout, stderr said
	code           chan int
}

const workerUID = 65532

// startWorker starts one in the room.
func (r *room) startWorker(init string, guest config.Guest, change func(*config.Machine, *containerspec.Container)) *worker {
	r.Helper()
	w := &worker{room: r, code: make(chan int, 1)}
	kit, top := newKit(r.T), r.TempDir()
	for _, dir := range []*string{&w.door, &w.rw, &w.ro} {
		*dir = filepath.Join(top, fmt.Sprint(len(*dir), time.Now().UnixNano()))
		if err := os.Mkdir(*dir, 0o755); err != nil {
			r.Fatal(err)
		}
	}
	if err := os.Chown(w.rw, workerUID, workerUID); err != nil {
		r.Fatal(err)
	}
	if err := os.Chmod(init, 0o644); err != nil {
		r.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	filter, err := seccomp.Filter(compose.SeccompProfile(), runtime.GOARCH)
	if err != nil {
		r.Fatal(err)
	}
	m := config.Machine{Accelerator: config.TCG, Kit: "/vm/kit", Init: "/vm/init", MemoryMiB: 256, CPUs: 1, Outlet: "/run/outlet/outlet.sock", Guest: guest,
		Shares: []config.Share{{Tag: "ro", Dir: "/shares/ro", ReadOnly: true}, {Tag: "rw", Dir: "/shares/rw"}}}
	c := &containerspec.Container{
		Version: containerspec.Version, Name: "test-worker-1", Service: "worker", Role: containerspec.Worker,
		Process:  containerspec.Process{Args: []string{"/vm/workshop-vm", "run", "/machine.json"}, Cwd: "/", UID: workerUID, GID: workerUID},
		Hostname: "worker", Network: containerspec.Network{Mode: containerspec.NetJoin, Of: "room"},
		Limits: containerspec.Limits{Unlimited: true, Shm: 1 << 20}, Seccomp: filter, Landlock: true,
	}
	bind := func(source, target string, readOnly bool) {
		source, err := filepath.EvalSymlinks(source)
		if err != nil {
			r.Fatal(err)
		}
		c.Mounts = append(c.Mounts, containerspec.Mount{Type: containerspec.Bind, Source: source, Target: target, ReadOnly: readOnly})
	}
	bind(self, "/vm/workshop-vm", true)
	bind(init, "/vm/init", true)
	bind(kit, "/vm/kit", true)
	bind(w.ro, "/shares/ro/0", true)
	bind(w.rw, "/shares/rw/0", false)
	bind(w.door, dialin.Dir, true)
	bind(r.dir, "/run/outlet", true)
	qemu, err := monitor.FindClosure(os.DirFS("/"), config.TCG)
	if err != nil {
		r.Fatal(err)
	}
	for _, file := range qemu.Files {
		bind(file, file, true)
	}
	if change != nil {
		change(&m, c)
	}
	text, err := json.Marshal(m)
	if err != nil {
		r.Fatal(err)
	}
	c.Files = []containerspec.File{{Path: "/machine.json", Data: string(text), Mode: 0o444}}
	w.run(c)
	return w
}

// run starts the container.
func (w *worker) run(c *containerspec.Container) {
	w.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		w.Fatal(err)
	}
	program := filepath.Join(w.TempDir(), "workshop-init")
	if err := testutil.Init(program); err != nil {
		w.Fatal(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	defer from.Close()
	cmd := exec.Command("/proc/self/exe", program)
	cmd.Env = []string{asSupervisor + "=1"}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &w.stdout, &w.stderr, []*os.File{to}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = w.ns.Start(cmd)
	}
	to.Close()
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		w.code <- cmd.ProcessState.ExitCode()
	}()
	w.Cleanup(func() {
		in.Close()
		select {
		case code := <-w.code:
			w.code <- code
		case <-time.After(10 * time.Second):
			w.Error("the worker goes on")
		}
		if w.Failed() {
			w.Logf("the worker said: %.4000s\nand on stderr: %s", strings.Join(w.stdout.lines(), "\n"), &w.stderr)
		}
	})
	if _, err := in.Write(text); err != nil {
		w.Fatal(err)
	}
	if _, err := fmt.Fscan(from, &w.pid); err != nil {
		w.Fatalf("no worker: %v: %s", err, &w.stderr)
	}
}

// says waits until the worker has said a line; it mustn't end before.
func (w *worker) says(line string) {
	w.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if slices.Contains(w.stdout.lines(), line) {
			return
		}
		select {
		case code := <-w.code:
			w.code <- code
			w.Fatalf("it ended with %d before it said %q", code, line)
		default:
		}
		if time.Now().After(end) {
			w.Fatalf("it doesn't say %q", line)
		}
	}
}

// ends waits for the end of the container, and returns how long it took.
func (w *worker) ends(want int, within time.Duration) {
	w.Helper()
	began := time.Now()
	select {
	case code := <-w.code:
		w.code <- code
		if code != want {
			w.Errorf("it ended with %d, want %d", code, want)
		}
		w.Logf("it ended after %v", time.Since(began).Round(time.Millisecond))
	case <-time.After(within):
		w.Fatalf("it goes on after %v", within)
	}
}

// processes are those of the container but PID 1, by what they are.
func (w *worker) processes() (qemu, files int) {
	w.Helper()
	list, err := reaper.Scan()
	if err != nil {
		w.Fatal(err)
	}
	for _, i := range reaper.Descendants(list, w.pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.Pid))
		switch args := strings.Split(string(line), "\x00"); {
		case args[0] == monitor.Program:
			qemu = i.Pid
		case len(args) > 1 && args[1] == monitor.FilesCommand:
			files = i.Pid
		default:
			w.Errorf("a process %q of the worker", args)
		}
	}
	if qemu == 0 || files == 0 {
		w.Fatalf("QEMU is %d, the file server %d", qemu, files)
	}
	return qemu, files
}

// session connects to the worker's tools, as the engine does.
func (w *worker) session() *net.UnixConn {
	w.Helper()
	c, err := dialin.Accept(w.Context(), w.door, w.pid)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn)
}

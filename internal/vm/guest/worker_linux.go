package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/engine/namespace/container"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/guard/buffers"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/vm/config"
)

// dialInDir is the worker's dial-in directory, as this side sees it.
const dialInDir = "/run/dial-in"

// How long the worker may take to end when the machine does, and its last words to be taken.
// The host waits a second for all of it.
const (
	endWithin  = 300 * time.Millisecond
	saidWithin = 300 * time.Millisecond
)

// worker is the machine's worker, a container of this kernel.
type worker struct {
	send     func(carrier.Head) error
	reaper   reaper.Reaper
	started  chan struct{} // closed when proc is set
	proc     *reaper.Process
	sessions chan struct{} // one for each
	output   sync.WaitGroup
}

func newWorker() *worker {
	return &worker{started: make(chan struct{}), sessions: make(chan struct{}, dialin.MaxSessions)}
}

// run starts the worker and returns why it ended. When ended is closed, it ends it.
func (w *worker) run(text []byte, ended <-chan struct{}) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			w.reaper.Reap()
		}
	}()
	started := make(chan error, 1)
	go func() { started <- w.start(text) }() // a mount may wait for a server that doesn't answer
	var err error
	select {
	case err = <-started:
	case <-ended:
		return errEnded
	}
	if err != nil {
		within(saidWithin, func() { w.say(carrier.Stdout, "FAILED "+strings.ReplaceAll(err.Error(), "\n", "; ")) })
		return err
	}
	select {
	case <-w.proc.Done():
	case <-ended: // as PID 1 does with a signal from outside
		_ = w.proc.Signal(unix.SIGTERM)
		select {
		case <-w.proc.Done():
		case <-time.After(endWithin):
		}
		return errEnded
	}
	within(saidWithin, w.output.Wait)
	if status := w.proc.Wait(); status.Signaled() {
		return fmt.Errorf("the worker's PID 1 was ended by signal %d", status.Signal())
	} else if status.ExitStatus() != 0 {
		return fmt.Errorf("the worker's PID 1 exited with %d", status.ExitStatus())
	}
	return errors.New("the worker ended")
}

// within waits for something, but not longer than that.
func within(long time.Duration, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(long):
	}
}

// start mounts what the worker has and starts it.
func (w *worker) start(text []byte) error {
	var g config.Guest
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return fmt.Errorf("%s: %w", config.File, err)
	}
	c := &g.Container
	// The kernel's own limit comes from the machine's memory, and may be less than the worker's.
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		return fmt.Errorf("RLIMIT_NPROC: %w", err)
	}
	if err := mountFiles(g.Shares, c.Root.Dir == config.RootDir); err != nil {
		return err
	}
	go forget(g.Nodes)
	if err := os.Mkdir(dialInDir, 0o755); err != nil {
		return err
	}
	c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: dialInDir, Target: dialin.Dir, ReadOnly: true})
	group, err := newGroup(c.Limits)
	if err != nil {
		return err
	}
	// The machine's network is the worker's. It isn't the host mode, which is the guard's.
	c.Network, c.Sysctls = spec.Network{Mode: spec.NetJoin}, nil
	network, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	defer network.Close()
	o := container.Options{NetNS: network, Cgroup: group.Add}
	for _, m := range group.Mounts() {
		o.CgroupMounts = append(o.CgroupMounts, container.CgroupMount(m))
	}
	for stream, to := range map[carrier.Stream]**os.File{carrier.Stdout: &o.Stdout, carrier.Stderr: &o.Stderr} {
		ours, theirs, err := os.Pipe()
		if err != nil {
			return err
		}
		*to = theirs
		defer theirs.Close()
		w.output.Go(func() { tell(ours, func(line string) { w.say(stream, line) }) })
	}
	if w.proc, err = container.Start(&w.reaper, config.Init, c, o); err != nil {
		return err
	}
	close(w.started)
	return nil
}

// say tells the host a line of the worker's.
func (w *worker) say(s carrier.Stream, line string) {
	line = strings.ToValidUTF8(line[:min(len(line), carrier.MaxLine)], "?")
	_ = w.send(carrier.Head{Kind: carrier.Output, Stream: s, Line: line}) // the carrier's end is seen elsewhere
}

// session brings a session of the host to the worker's PID 1.
func (w *worker) session(s *mux.Stream) {
	select {
	case <-w.started:
	default:
		return
	}
	select {
	case w.sessions <- struct{}{}:
		defer func() { <-w.sessions }()
	case <-s.Gone():
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.Gone():
			cancel()
		case <-ctx.Done():
		}
	}()
	c, err := dialin.Accept(ctx, dialInDir, w.proc.Pid)
	if err != nil {
		return
	}
	carrier.JoinUnix(c.(*net.UnixConn), s, buffers.For(1, carrier.MaxStreams))
}

// mountFiles mounts the shares, and the image if there is one.
func mountFiles(tags []string, image bool) error {
	mount := func(source, at, kind string, flags uintptr) error {
		err := os.MkdirAll(at, 0o755)
		if err == nil {
			err = unix.Mount(source, at, kind, unix.MS_NOSUID|unix.MS_NODEV|flags, "")
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", at, err)
		}
		return nil
	}
	for _, tag := range tags {
		if err := mount(tag, path.Join(config.SharesDir, tag), "virtiofs", 0); err != nil {
			return err
		}
	}
	if !image {
		return nil
	}
	return mount("/dev/vda", config.RootDir, "erofs", unix.MS_RDONLY)
}

// newGroup makes the worker's control group. The machine's processors are limited outside.
func newGroup(l spec.Limits) (*cgroup.Group, error) {
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("mount /sys/fs/cgroup: %w", err)
	}
	groups, err := cgroup.Find()
	if err != nil {
		return nil, err
	}
	memory, err := memoryFor(l.Memory)
	if err != nil {
		return nil, err
	}
	return groups.New("worker", cgroup.Limit{MemoryBytes: memory, PIDs: l.PIDs})
}

package workerinit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/mounttable"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/lib/workdir"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/tool"
)

// Options are the checks that a worker must pass.
type Options struct {
	// Room: wait until the room's DNS answers.
	Room bool
	// Relay is the socket of the outlet, which carries what the worker connects to: its
	// kernel has a network stack of its own (package carrier). Empty: there is none.
	Relay string
	// Write lists the directories that must be writable.
	Write []string
	// Caches are tended before the worker is ready, not by a health check.
	Caches []Cache
	// Workdir is the worker's working directory, an absolute path; empty: none. If
	// it is missing, it is created where the worker may write.
	Workdir string
	// Tools is the worker's grant of tools (tool.Grant) as JSON. Toolbox sessions
	// read it from the arguments of PID 1; nil: nothing.
	Tools *string
	// Timeout bounds the wait for the room; 0 means no limit.
	Timeout time.Duration
}

// spareThreads are threads started in advance: once the worker has reached its limit of
// processes, PID 1 gets no new thread, and must not crash. One for each goroutine that
// may be in a system call at the same time: the main loop, the watch of the mounts, the
// five of the door while a session starts, and one that collects garbage.
const spareThreads = 8

// wanted are the signals that PID 1 obeys.
var wanted = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGCHLD}

// defaultTimeout is longer than any `up` waits.
const defaultTimeout = 5 * time.Minute

// Main is `workshop-init gate`: it prints what its container is (package made) and READY,
// or "FAILED reason" and ends with 1; then it reaps until it gets SIGTERM or SIGINT. It
// returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	// First, before any program of the worker can run: a process of the same uid must
	// not write to PID 1's descriptors (/proc/1/fd) or trace it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(stdout, "FAILED PR_SET_DUMPABLE: "+err.Error())
		return 1
	}
	if err := pid1.Lower(); err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	// Threads and memory of PID 1 count against the worker's limits.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(20)

	o, err := parseArgs(args, stderr)
	if err != nil {
		return 2
	}
	if o.Tools != nil {
		if _, err := tool.ParseGrant(*o.Tools); err != nil {
			fmt.Fprintln(stdout, "FAILED --tools: "+oneLine(err.Error()))
			return 1
		}
	}
	// From here on none of these is lost, also not to PID 1, which the kernel spares
	// those without a handler (signal(7), pid_namespaces(7)).
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, wanted...)
	// Not read: a stdout without a reader doesn't end PID 1.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	if err := reaper.DropSignals(wanted...); err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	reaper.SpareThreads(spareThreads)

	mounts, err := mounttable.Open()
	if err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	// Before it waits for the room, in which it may not be.
	io.WriteString(stdout, made.Line(mounts.Text()))
	lost := make(chan error, 1)
	go func() {
		err := mounts.Lost()
		killAll()
		lost <- err
	}()

	r := &reaper.Reaper{KillStopped: true} // its children are sessions
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	passed, tended := make(chan error, 1), make(chan []string, 1)
	go func() {
		within, stop := context.WithCancel(ctx)
		defer stop()
		kept := make(chan error, 1)
		go func() {
			notes, err := tendAll(within, o.Caches)
			tended <- notes
			kept <- err
		}()
		err := prepare(ctx, o, stderr)
		if err != nil {
			stop()
		}
		passed <- errors.Join(err, <-kept)
	}()
	for waiting := true; waiting; {
		select {
		case err := <-passed:
			for _, note := range <-tended {
				fmt.Fprintln(stdout, notePrefix+oneLine(note))
			}
			if err != nil {
				fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
				return 1
			}
			waiting = false
		case s := <-signals:
			if s == unix.SIGCHLD {
				r.Reap() // an exec before readiness (B21) may leave orphans
				continue
			}
			return 0
		case err := <-lost:
			return endLost(stdout, err)
		}
	}
	tools, err := dialin.NewTools(r)
	if err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	d := dialin.New(dialin.Dir, tools.Start)
	if err := d.Open(); err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	fmt.Fprintln(stdout, "READY") // tools work
	go tools.KillStray(ctx)
	go d.Serve(ctx)
	return initLoop(signals, lost, stdout, r, tools)
}

// endLost says why the worker ends. It can't go on: what is at the place of a lost
// mount is no longer what its file says, and PID 1 has no right to mount.
func endLost(stdout io.Writer, err error) int {
	fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
	return pid1.MountLost
}

// prepare is [Pass] with a relay where the worker needs one.
func prepare(ctx context.Context, o Options, stderr io.Writer) error {
	var problem error
	if o.Relay != "" {
		if problem = startRelay(ctx, o, stderr); problem != nil {
			o.Room = false // nobody would answer
		}
	}
	return errors.Join(problem, Pass(ctx, o))
}

// Pass checks the directories, enters the working directory and waits for the room. Its
// error lists all problems.
func Pass(ctx context.Context, o Options) error {
	// Problems with directories are reported without waiting for the room.
	var problems []error
	for _, dir := range o.Write {
		if err := checkWritable(dir); err != nil {
			problems = append(problems, err)
		}
	}
	if o.Workdir != "" && len(problems) == 0 {
		problems = append(problems, enter(o.Workdir))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if !o.Room {
		return nil
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	return waitForRoom(ctx)
}

// enter creates the working directory and changes to it.
func enter(dir string) error {
	if err := workdir.Make(dir); err != nil {
		return err
	}
	return workdir.Enter(dir)
}

// dirs is a flag that can be given several times.
type dirs []string

func (d *dirs) String() string { return strings.Join(*d, ",") }
func (d *dirs) Set(s string) error {
	if !strings.HasPrefix(s, "/") {
		return fmt.Errorf("%q is not an absolute path", s)
	}
	*d = append(*d, s)
	return nil
}

func parseArgs(args []string, stderr io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("workshop-init gate", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.Room, "room", false, "wait until the room's DNS answers")
	f.Func("relay", "socket of the outlet, where the worker's network stack is its own", func(socket string) error {
		if !path.IsAbs(socket) {
			return fmt.Errorf("got %q, want an absolute path", socket)
		}
		o.Relay = socket
		return nil
	})
	f.Var((*dirs)(&o.Write), "write", "directory that must be writable (may be repeated)")
	f.Func("cache", "cache as BYTES:DIR, emptied above that size (may be repeated)", func(text string) error {
		c, err := parseCache(text)
		o.Caches = append(o.Caches, c)
		return err
	})
	f.Func("workdir", "working directory, entered without magic links", func(dir string) error {
		if !path.IsAbs(dir) || o.Workdir != "" {
			return fmt.Errorf("got %q, want one absolute path", dir)
		}
		o.Workdir = dir
		return nil
	})
	f.Func("tools", "what the worker's tools may do (JSON)", func(text string) error {
		if o.Tools != nil {
			return errors.New("it is given twice")
		}
		o.Tools = &text
		return nil
	})
	f.DurationVar(&o.Timeout, "timeout", defaultTimeout, "longest wait for the room; 0: no limit")
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintln(stderr, "workshop-init: error: gate: "+err.Error())
	}
	return o, err
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

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

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/lib/workdir"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/tool"
)

// Options is what a worker must pass.
type Options struct {
	// Room: wait until the room's DNS answers.
	Room bool
	// Write lists the directories that must be writable.
	Write []string
	// Workdir is the worker's working directory, an absolute path; empty: none is
	// entered. It is made where it is missing and the worker may write.
	Workdir string
	// Tools is what the worker's tools may do, as JSON. The sessions of the
	// toolbox read it from our arguments (tool.Grant); nil: nothing.
	Tools *string
	// Timeout bounds the wait for the room; 0 means as long as it takes.
	Timeout time.Duration
}

// spareThreads: once the worker has reached its limit of processes, PID 1 gets
// no thread, and must not end for want of one.
const spareThreads = 3

// harmless are signals at which the gate goes on. SIGSEGV and its like end a
// program of Go in any case.
var harmless = []os.Signal{
	unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGTRAP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM,
	unix.SIGVTALRM, unix.SIGSTKFLT, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGIO, unix.SIGPWR, unix.SIGSYS,
}

// defaultTimeout is longer than any `up` waits.
const defaultTimeout = 5 * time.Minute

// Main is `workshop-init gate`: it prints READY, or "FAILED reason" and ends
// with 1; then it reaps until it gets SIGTERM or SIGINT. It returns the exit
// code.
func Main(args []string, stdout, stderr io.Writer) int {
	// First of all, before anything of the worker can run: a process of the
	// same uid must not write to our descriptors (/proc/1/fd) or trace us.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(stdout, "FAILED PR_SET_DUMPABLE: "+err.Error())
		return 1
	}
	// Threads and memory of the gate count against the worker's limits.
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
	// From here on no signal is lost, also not to PID 1, which the kernel
	// spares those without a handler (signal(7), pid_namespaces(7)).
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGCHLD)
	// Go's runtime has a handler for every signal, and would end at these: any
	// process of the worker could send one. Nobody reads the channel. To ignore
	// them would be inherited by what sessions run.
	signal.Notify(make(chan os.Signal, 1), harmless...)
	reaper.SpareThreads(spareThreads)

	r := &reaper.Reaper{KillStopped: true} // its children are sessions
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	passed := make(chan error, 1)
	go func() { passed <- Pass(ctx, o) }()
	for waiting := true; waiting; {
		select {
		case err := <-passed:
			if err != nil {
				fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
				return 1
			}
			waiting = false
		case s := <-signals:
			if s == unix.SIGCHLD {
				r.Reap() // an exec before readiness (B21) leaves orphans too
				continue
			}
			return 0
		}
	}
	d := dialin.New(dialin.Dir, r)
	if err := d.Open(); err != nil {
		fmt.Fprintln(stdout, "FAILED "+oneLine(err.Error()))
		return 1
	}
	fmt.Fprintln(stdout, "READY") // tools work
	go d.Serve(ctx)
	return initLoop(signals, r, d)
}

// Pass tests the directories, enters the working directory and waits for the
// room. Its error is everything that is wrong, for a person.
func Pass(ctx context.Context, o Options) error {
	// The directories need no waiting: what is wrong with them is said at
	// once.
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

// enter makes the working directory, and works there.
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
	f.Var((*dirs)(&o.Write), "write", "directory that must be writable (may be repeated)")
	f.Func("workdir", "working directory, entered without magic links", func(dir string) error {
		if !path.IsAbs(dir) || o.Workdir != "" {
			return fmt.Errorf("want one absolute path, got %q", dir)
		}
		o.Workdir = dir
		return nil
	})
	f.Func("tools", "what the worker's tools may do (JSON)", func(text string) error {
		if o.Tools != nil {
			return errors.New("it stands twice")
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

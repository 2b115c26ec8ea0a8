package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/lib/workdir"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

const (
	// endWithin bounds the killing of what a session leaves. Nothing takes that
	// long but a program that forks against it.
	endWithin = 10 * time.Second
	// lastCalls is how long calls have to end after the connection has.
	lastCalls = 3 * time.Second
	// spareThreads: at the worker's limit of processes no thread can be made,
	// and a Go program that needs one ends.
	spareThreads = 8
)

// Main is `workshop-init tools`: it serves one session on stdin and stdout,
// ends what the session started, and returns the exit code.
func Main(args []string, stdin, stdout *os.File, stderr io.Writer) int {
	// Before anything can be started: a process of the same uid must not write
	// to our connection (/proc/PID/fd) or trace us.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fail(stderr, fmt.Errorf("PR_SET_DUMPABLE: %w", err))
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(stderr, fmt.Errorf("PR_SET_CHILD_SUBREAPER: %w", err))
	}
	switch {
	case len(args) == 2 && args[0] == processFlag:
		return processMain(args[1], stdin, stdout, stderr)
	case len(args) != 0:
		fmt.Fprintln(stderr, "usage: workshop-init tools [--process keep]")
		return 2
	}
	if err := pid1.Lower(); err != nil { // an engine's exec is no child of PID 1
		return fail(stderr, err)
	}
	grant, dir, err := ofWorker()
	if err != nil {
		return fail(stderr, err)
	}
	var lost error
	if dir != "" {
		lost = workdir.Enter(dir)
	}
	s, err := newSession(grant)
	if err != nil {
		return fail(stderr, err)
	}
	s.lost = lost
	s.instance = instance()
	if err := s.run(stdin, stdout); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// run serves the connection, and ends what the session started.
func (s *session) run(stdin, stdout *os.File) error {
	// What a session uses counts against the worker's limits. With one thread at a
	// time a call is shorter too: nothing is handed from one core to another.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(50)
	reaper.SpareThreads(spareThreads)

	// Not ignored, which programs that are started would inherit: SIGPIPE is
	// the connection's end, and that is seen there.
	wanted := []os.Signal{unix.SIGCHLD, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGPIPE}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, wanted...)
	if err := reaper.DropSignals(wanted...); err != nil {
		return err
	}

	conn, err := newConnection(stdin, stdout)
	if err != nil {
		return err
	}
	go func() {
		for no := range signals {
			switch no {
			case unix.SIGCHLD:
				s.reaper.Reap()
			case unix.SIGTERM, unix.SIGHUP, unix.SIGINT:
				conn.Close()
			}
		}
	}()
	err = s.serve(conn)
	s.outputs.end()
	if left := s.end(); left > 0 {
		err = errors.Join(err, fmt.Errorf("%d processes of the session can't be killed", left))
	}
	return err
}

func fail(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "workshop-init: error: tools:", err)
	return 1
}

// serve answers until the connection ends. A call that doesn't end with it,
// such as one that waits for a dead disk, is abandoned after a while.
func (s *session) serve(conn *connection) error {
	served := make(chan error, 1)
	go func() { served <- wire.Serve(context.Background(), conn, s.handle) }()
	select {
	case err := <-served:
		return err
	case <-conn.ended:
	}
	select {
	case err := <-served:
		return err
	case <-time.After(lastCalls):
		return errors.New("a call did not end with its session")
	}
}

// end kills what the session left running. What a normally ended exec left in
// the background stays and falls to PID 1, as with an engine's exec. In process
// mode there is no exec.
func (s *session) end() (left int) {
	if s.keep.Load() && s.view == nil {
		return 0
	}
	return s.reaper.KillDescendants(endWithin)
}

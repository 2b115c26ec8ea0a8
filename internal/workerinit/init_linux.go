package workerinit

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// grace is how long the worker's processes may take to end after the signal; then
// PID 1 exits, and the kernel kills the others (pid_namespaces(7)). It is short, as
// `down` and `restart` wait for it.
const grace = 100 * time.Millisecond

// initLoop reaps orphans until SIGTERM or SIGINT, which it forwards to every
// process of the container, or until a mount is lost. It returns the exit code.
func initLoop(signals <-chan os.Signal, lost <-chan error, stdout io.Writer, r *reaper.Reaper, tools *dialin.Tools) int {
	for {
		select {
		case err := <-lost:
			return endLost(stdout, err)
		case s := <-signals:
			no, ok := s.(unix.Signal)
			switch {
			case !ok:
			case no != unix.SIGCHLD:
				endAll(no, r)
				return 0
			case r.Reap():
				tools.Stray()
			}
		}
	}
}

// killAll kills all other processes. It does nothing unless it runs as PID 1.
func killAll() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

// endAll forwards a signal to all other processes and waits until they have ended or
// the grace period is over. It does nothing unless it runs as PID 1: "all" would be the
// machine's.
func endAll(no unix.Signal, r *reaper.Reaper) {
	if os.Getpid() != 1 || unix.Kill(-1, no) != nil {
		return // ESRCH: no process is left
	}
	for end := time.Now().Add(grace); time.Now().Before(end); {
		r.Reap()
		if unix.Kill(-1, 0) != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

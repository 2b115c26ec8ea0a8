package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// memoryLimit makes the garbage collector work harder; a supervisor of 20
// containers needs a few MiB.
const memoryLimit = 24 << 20

// program is executed by children: this very file, even if its path was replaced.
const program = "/proc/self/exe"

// harmless are signals that would end a Go program. A supervisor has no terminal,
// and ends only by SIGTERM or a request.
var harmless = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTRAP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM,
	unix.SIGVTALRM, unix.SIGSTKFLT, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGIO, unix.SIGPWR, unix.SIGSYS,
}

// Main is `workshop-init supervise --dir STATE_DIR --digest SHA256 [--moved]`: it prints READY on stdout once
// it accepts requests, or "FAILED reason", closes stdout, and runs until SIGTERM or
// a shutdown request. It returns the exit code. Everything that it started ends with
// the process. With --moved it does nothing before stdin says that it was moved into
// its control group (api.Moved).
//
// With --attached it also ends at EOF of stdin.
//
// Its caller starts it as PID 1 of a pid namespace in a new mount namespace and,
// without root, in a user namespace that maps only the caller's uid and gid, with
// all capabilities, also ambient ones.
func Main(args []string, stdout, stderr io.Writer) int {
	return run1(args, stdout, stderr, contained)
}

func run1(args []string, stdout, stderr io.Writer, begin starter) int {
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(memoryLimit)

	f := flag.NewFlagSet("workshop-init supervise", flag.ContinueOnError)
	f.SetOutput(stderr)
	dir := f.String("dir", "", "the project's state directory (required)")
	digest := f.String("digest", "", "the SHA-256 of this program in hex, which its caller has checked")
	attached := f.Bool("attached", false, "end with whoever has the other end of stdin")
	moved := f.Bool("moved", false, "wait until stdin says that this process was moved into its control group")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if f.NArg() > 0 || !filepath.IsAbs(*dir) {
		fmt.Fprintln(stderr, "workshop-init supervise: error: --dir with an absolute path is required")
		return 2
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), harmless...)

	s := newSupervisor(*dir, stderr)
	s.begin, s.digest = begin, *digest
	l, err := s.prepare(*moved, *attached, signals)
	if err != nil {
		fmt.Fprintln(stdout, "FAILED "+strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	go s.accept(l)
	fmt.Fprintln(stdout, "READY")
	if err := toNull(1); err != nil {
		s.say("%v", err)
	}
	return s.loop(signals, l)
}

// prepare does everything before the first request.
func (s *Supervisor) prepare(moved, attached bool, signals chan<- os.Signal) (*net.UnixListener, error) {
	if err := s.heed(moved, attached, signals); err != nil {
		return nil, err
	}
	if err := confine(); err != nil {
		return nil, err
	}
	dir, err := s.takeLock()
	if err != nil {
		return nil, err
	}
	s.program = program
	s.prefix = groupPrefix(s.dir)
	if s.groups, err = s.findGroups(); err != nil {
		s.groups, s.noGroups = nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.save(); err != nil {
		return nil, err
	}
	if err := dropCapabilities(); err != nil {
		return nil, err
	}
	return open(dir)
}

// loop reaps processes until the supervisor is to end.
func (s *Supervisor) loop(signals <-chan os.Signal, l *net.UnixListener) int {
	stop := func() {
		if err := s.shutdown(); err != nil {
			s.say("%v", err)
		}
	}
	looks := time.NewTicker(lockLook)
	for {
		select {
		case <-looks.C:
			if s.lockRemoved() {
				looks.Stop()
				s.say("%s was removed: the supervisor and everything it started end", s.dir)
				go stop()
			}
		case sig := <-signals:
			if sig == unix.SIGCHLD {
				s.reaper.Reap()
				continue
			}
			go stop()
		case <-s.ended:
			l.Close()
			if !s.lockRemoved() { // else it belongs to another supervisor
				_ = os.Remove(s.dir + "/" + api.SocketName)
			}
			for end := time.Now().Add(time.Second); s.busy.Load() > 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			return 0
		}
	}
}

// groupPrefix returns the prefix of a project's control groups. It depends on the
// state directory, as another one may have a project of the same name.
func groupPrefix(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "ws" + hex.EncodeToString(sum[:6]) + "-"
}

// heed reads what the caller says on stdin: that it has moved this process, and by its
// end that it has ended.
func (s *Supervisor) heed(moved, attached bool, signals chan<- os.Signal) error {
	if moved {
		line := make([]byte, len(api.Moved))
		if _, err := io.ReadFull(os.Stdin, line); err != nil || string(line) != api.Moved {
			return errors.New("its caller ended before it was in its control group")
		}
		s.findGroups = cgroup.FindHere
	}
	if s.attached = attached; attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			signals <- unix.SIGTERM
		}()
		return nil
	}
	if moved {
		return toNull(0)
	}
	return nil
}

// toNull closes a pipe to the caller but keeps the descriptor number occupied, so that
// nothing else gets it.
func toNull(fd int) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	return unix.Dup3(int(null.Fd()), fd, 0)
}

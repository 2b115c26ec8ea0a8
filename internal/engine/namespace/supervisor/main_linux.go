package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
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
	"sync"
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

// Main is `workshop-init supervise --dir STATE_DIR`: it prints READY on stdout once
// it accepts requests, or "FAILED reason", closes stdout, and runs until SIGTERM or
// a shutdown request. It returns the exit code. Everything that it started ends with
// the process.
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
	attached := f.Bool("attached", false, "end with whoever has the other end of stdin")
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
	s.begin = begin
	if s.attached = *attached; s.attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			signals <- unix.SIGTERM
		}()
	}
	l, err := s.prepare()
	if err != nil {
		fmt.Fprintln(stdout, "FAILED "+strings.Join(strings.Fields(err.Error()), " "))
		return 1
	}
	go s.accept(l)
	fmt.Fprintln(stdout, "READY")
	if err := closeStdout(); err != nil {
		s.say("%v", err)
	}
	return s.loop(signals, l)
}

// prepare does everything before the first request.
func (s *Supervisor) prepare() (*net.UnixListener, error) {
	if err := confine(); err != nil {
		return nil, err
	}
	dir, err := s.takeLock()
	if err != nil {
		return nil, err
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("this program can't be read: %w", err)
	}
	s.program, s.hash = program, hashOf(self)
	s.prefix = groupPrefix(s.dir)
	if s.groups, err = cgroup.Find(); err != nil {
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

// hashOf hashes a program concurrently: 8 MB take some milliseconds.
func hashOf(f *os.File) func() string {
	hash := sync.OnceValue(func() string {
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return ""
		}
		return hex.EncodeToString(h.Sum(nil))
	})
	go hash()
	return hash
}

// closeStdout closes the pipe to the caller but keeps the descriptor number
// occupied, so that nothing else gets it.
func closeStdout() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	return unix.Dup3(int(null.Fd()), 1, 0)
}

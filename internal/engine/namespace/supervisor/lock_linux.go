package supervisor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// Times for acquiring the lock: if another supervisor has it, which may be ending,
// and if only clients have it, which share it briefly to check.
const (
	lockTime   = 200 * time.Millisecond
	sharedTime = 5 * time.Second
)

// lockLook is how often a supervisor checks whether its lock file still exists.
const lockLook = 2 * time.Second

// lockRemoved reports whether the lock file, and so the state directory, was
// removed: clients no longer find this process, and another may have replaced it.
func (s *Supervisor) lockRemoved() bool {
	var st unix.Stat_t
	return s.lock != nil && unix.Fstat(int(s.lock.Fd()), &st) == nil && st.Nlink == 0
}

// takeLock opens the state directory and makes sure that it has no other supervisor.
// The lock is held for the lifetime of this process.
func (s *Supervisor) takeLock() (*os.File, error) {
	dir, err := os.OpenFile(s.dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, err
	}
	if st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s must be yours, with mode 0700: whoever can write there decides what runs", s.dir)
	}
	fd, err := unix.Openat(int(dir.Fd()), api.LockName, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.LockName, err)
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		limit := lockTime
		if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == nil {
			limit = sharedTime
			_ = unix.Flock(fd, unix.LOCK_UN)
		}
		if time.Since(began) > limit {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another supervisor lives in %s", s.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.LockName, err)
	}
	s.lock = os.NewFile(uintptr(fd), api.LockName)
	return dir, errors.Join(os.MkdirAll(s.dir+"/"+api.LogDir, 0o700), newResolv(s.dir))
}

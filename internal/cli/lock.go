package cli

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a waiting command looks again.
const lockPoll = 100 * time.Millisecond

// lock keeps other commands of this user that change the same project out
// until it is unlocked: two at once would plan from what the other is about to
// change. It waits, and says for whom. The kernel unlocks for a process that
// is killed.
//
// The lock is a file NAME.lock in the user's state directory with the holder's
// process ID in it; it goes with the lock. Where there is no such directory,
// nothing is locked, with a warning: `down` must work there too.
func (a *app) lock(ctx context.Context, project string) (unlock func(), err error) {
	dir := a.stateDir()
	if dir == "" {
		a.warn("without a home directory, nothing keeps two commands on project %s apart", project)
		return func() {}, nil
	}
	path := filepath.Join(dir, project+".lock")
	for said := false; ; {
		held, err := tryLock(path)
		if err != nil {
			a.warn("nothing keeps two commands on project %s apart: %v", project, err)
			return func() {}, nil
		}
		if held != nil {
			return func() {
				// While it is locked, so that whoever opened it sees that it is
				// gone. Windows removes no open file; there it stays.
				_ = os.Remove(path)
				_ = held.Unlock()
			}, nil
		}
		if !said {
			said = true
			a.warnBusy(project, path)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// tryLock returns nil without an error where another process has the lock.
func tryLock(path string) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil || !ok {
		_ = f.Close()
		return nil, err
	}
	// The one before may have removed the file between open and lock.
	mine, err := f.Stat()
	there, errThere := os.Stat(path)
	if err != nil || errThere != nil || !os.SameFile(mine, there) {
		_ = f.Unlock()
		return nil, nil
	}
	// Only for the message; Windows refuses it while the file is locked.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
	return f, nil
}

func (a *app) warnBusy(project, path string) {
	holder := ""
	if pid, err := os.ReadFile(path); err == nil && len(pid) > 0 && len(pid) < 12 {
		holder = " (pid " + printable(strings.TrimSpace(string(pid))) + ")"
	}
	a.warn("another workshop command works on project %s%s; waiting …", project, holder)
}

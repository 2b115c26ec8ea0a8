package app

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// lockPoll is how often a waiting command looks again.
const lockPoll = 100 * time.Millisecond

// Change is one command's work on a project: others of this user that change the
// same one wait until it is unlocked, for two at once would plan from what the
// other is about to change.
type Change struct {
	env    *Env
	unlock func()
	// waited reports whether another command was at work first.
	waited bool
	// unfinished reports whether the last command on the project was killed.
	unfinished bool
}

// Unlock ends it.
func (ch *Change) Unlock() { ch.unlock() }

// Change waits for its turn to change a project, and says for whom. The kernel
// unlocks for a process that is killed.
//
// The lock is a file NAME.lock in the user's state directory with the holder's
// process ID in it; it goes with the lock. Where there is no such directory,
// nothing is locked, with a warning: `down` must work there too.
func (env *Env) Change(ctx context.Context, project string) (*Change, error) {
	open := &Change{env: env, unlock: func() {}}
	dir := env.StateDir()
	if dir == "" {
		env.warn("without a home directory, nothing keeps two commands on project %s apart", project)
		return open, nil
	}
	path := filepath.Join(dir, project+".lock")
	for looks, said := 0, false; ; looks++ {
		held, left, err := tryLock(path)
		if err != nil {
			env.warn("nothing keeps two commands on project %s apart: %v", project, err)
			return open, nil
		}
		if held != nil {
			return &Change{env: env, waited: looks > 0, unfinished: left, unlock: func() {
				// While it is locked, so that whoever opened it sees that it is
				// gone. Windows removes no open file; there it stays.
				_ = os.Remove(path)
				_ = held.Unlock()
			}}, nil
		}
		// The holder writes its process ID after it has the lock: at the second
		// look it did.
		if pid := holder(path); !said && (pid != "" || looks > 0) {
			said = true
			env.warn("another workshop command works on project %s%s; waiting …", project, pid)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// briefly locks a project for a change of its record alone; nil if another command works
// on it for longer. A lock of a command that was killed stays one.
func (env *Env) briefly(ctx context.Context, project string) (unlock func()) {
	path := filepath.Join(env.StateDir(), project+".lock")
	for range 20 {
		held, left, err := tryLock(path)
		if err != nil {
			return nil
		}
		if held != nil {
			return func() {
				if !left {
					_ = os.Remove(path)
				}
				_ = held.Unlock()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lockPoll):
		}
	}
	return nil
}

// tryLock is lockFile with the process ID written into the file. left reports whether the
// last holder was killed: it didn't remove the file.
func tryLock(path string) (held *flock.Flock, left bool, err error) {
	held, info, err := lockFile(path)
	if held == nil {
		return nil, false, err
	}
	// Only for the message; Windows refuses it while the file is locked.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
	return held, info.Size() > 0, nil
}

// lockFile returns nil without an error where another process has the lock.
func lockFile(path string) (held *flock.Flock, info os.FileInfo, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil || !ok {
		_ = f.Close()
		return nil, nil, err
	}
	// The one before may have removed the file between open and lock.
	mine, err := f.Stat()
	there, errThere := os.Stat(path)
	if err != nil || errThere != nil || !os.SameFile(mine, there) {
		_ = f.Unlock()
		return nil, nil, nil
	}
	return f, there, nil
}

func holder(path string) string {
	pid, err := boundedfile.Read(path, 11)
	if err != nil || len(pid) == 0 {
		return ""
	}
	return " (pid " + Printable(strings.TrimSpace(string(pid))) + ")"
}

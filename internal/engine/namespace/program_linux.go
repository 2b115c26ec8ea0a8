package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// The program lies in a directory of its own, which workers have at
// /opt/workshop, with a mode that lets nobody read it ([initimage.ToolMode]). So
// it isn't hashed again before each up: when it was written, its content was
// what it should be, and what the file system says of the file then (number,
// size, mode, and the time of its last change of any kind, which no program can
// set) is kept beside it. Where that differs the file is written anew.

// stamp identifies a file and its state.
type stamp struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	Mode  uint32 `json:"mode"`
	UID   uint32 `json:"uid"`
	CTime int64  `json:"ctime"` // nanoseconds
}

func stampOf(name string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return stamp{}, &os.PathError{Op: "lstat", Path: name, Err: err}
	}
	return stamp{Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size, Mode: st.Mode, UID: st.Uid, CTime: st.Ctim.Nano()}, nil
}

// programDir is the directory of the program of this build.
func (e *Engine) programDir() (string, initimage.Names, error) {
	n, err := e.init.Names(arch)
	if err != nil {
		return "", n, err
	}
	return filepath.Join(e.opts.CacheDir, "init", n.Digest), n, nil
}

// hasProgram reports whether the cache has the program, unchanged.
func (e *Engine) hasProgram() bool {
	dir, n, err := e.programDir()
	return err == nil && unchanged(dir, n)
}

func unchanged(dir string, n initimage.Names) bool {
	var then stamp
	b, err := os.ReadFile(dir + ".json")
	if err != nil || json.Unmarshal(b, &then) != nil {
		return false
	}
	now, err := stampOf(filepath.Join(dir, programName))
	// With another user's cache (sudo -E) the stamp is that user's too.
	mine := now.UID == uint32(os.Geteuid())
	return err == nil && now == then && mine && now.Size == n.Size && now.Mode == unix.S_IFREG|initimage.ToolMode
}

// program makes sure that the cache has the program, and returns its directory.
// Two at once wait for each other.
func (e *Engine) program() (string, error) {
	dir, n, err := e.programDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("the cache: %w: set XDG_CACHE_HOME and XDG_STATE_HOME to directories that you may write", err)
	}
	if err := executable(parent); err != nil {
		return "", err
	}
	lock, err := os.Open(parent)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	for _, how := range []int{unix.LOCK_SH, unix.LOCK_EX} {
		if err := unix.Flock(int(lock.Fd()), how); err != nil {
			return "", err
		}
		if unchanged(dir, n) {
			now := time.Now()
			_ = os.Chtimes(dir, now, now) // it is used: removeUnused
			return dir, nil
		}
	}
	if err := e.writeProgram(dir); err != nil {
		return "", fmt.Errorf("workshop-init can't be written to the cache: %w", err)
	}
	e.removeUnused(parent)
	return dir, nil
}

// writeProgram replaces the file in one step: a worker may just execute it.
func (e *Engine) writeProgram(dir string) error {
	data, err := e.init.Binary(arch) // its hash was compared
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		return err
	}
	_ = os.Remove(dir + ".json")
	name := filepath.Join(dir, programName)
	if err := (atomicfile.File{Name: name, Data: data, Mode: initimage.ToolMode, Temp: filepath.Dir(dir)}).Write(); err != nil {
		return err
	}
	now, err := stampOf(name)
	if err != nil {
		return err
	}
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return atomicfile.Write(dir+".json", b, 0o600)
}

// executable refuses a file system from which nothing can be executed.
func executable(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s lies on a file system that is mounted noexec, and workshop-init has to be executed from it: set XDG_CACHE_HOME to a directory elsewhere", dir)
	}
	return nil
}

package namespace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// The program is in its own directory, which workers have at /opt/workshop, with a
// mode that makes it unreadable ([initimage.ToolMode]). It isn't hashed again before
// each up: when it is written, its verified content is recorded by a stamp (inode,
// size, mode, and ctime, which no program can set). If the stamp differs, the file
// is written again. Containers have the directory as long as they live, so it is never
// one of a package, which an upgrade would change under them.

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

// programDir returns the directory of this build's program.
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
// Concurrent calls wait for each other.
func (e *Engine) program() (string, error) {
	dir, n, err := e.programDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", fmt.Errorf("the cache: %w: set XDG_CACHE_HOME and XDG_STATE_HOME to directories that you can write to", err)
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
			_ = os.Chtimes(dir, now, now) // time of the last use, for removeUnused
			return dir, nil
		}
	}
	if err := e.writeProgram(dir); err != nil {
		return "", fmt.Errorf("workshop-init can't be written to the cache: %w", err)
	}
	e.removeUnused(parent)
	return dir, nil
}

// writeProgram replaces the file atomically: a worker may be executing it.
func (e *Engine) writeProgram(dir string) error {
	data, err := e.init.Binary(arch) // its hash is checked
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // regardless of the umask
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

// guestDir ends the name of the directory with the program as guests have it.
const guestDir = "-guest"

// guestInit is the file of workshop-init for the guests of virtual machines, which is read
// before one boots. No other container has it.
func (e *Engine) guestInit() string {
	dir, _, err := e.programDir()
	if err != nil {
		return "" // which whoever needs it finds out
	}
	return filepath.Join(dir+guestDir, programName)
}

// writeGuestInit makes sure that the cache has it.
func (e *Engine) writeGuestInit() error {
	data, err := e.init.Binary(arch) // its hash is checked
	if err != nil {
		return err
	}
	name := e.guestInit()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if is, err := boundedfile.Read(name, int64(len(data))); err == nil && bytes.Equal(is, data) {
		now := time.Now()
		return os.Chtimes(filepath.Dir(name), now, now) // as [Engine.program] does
	}
	return atomicfile.Write(name, data, initimage.ReadableToolMode)
}

// executable refuses a file system that is mounted noexec.
func executable(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is on a noexec file system, but workshop-init must be executed from it: set XDG_CACHE_HOME to another directory", dir)
	}
	return nil
}

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// program opens workshop-init with O_PATH: sessions get the descriptor and execute
// it even if they can't reach its directory. A missing file is written; the
// directory is named after the content, and accessible to the user alone.
func (e *Engine) program() (*os.File, error) {
	n, err := e.init.Names(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(e.opts.CacheDir, "init", n.Digest, "workshop-init")
	if f, err := openProgram(name, n); err == nil {
		return f, nil
	}
	if err := e.writeProgram(name); err != nil {
		return nil, fmt.Errorf("workshop-init can't be written to the cache: %w", err)
	}
	return openProgram(name, n)
}

func openProgram(name string, n initimage.Names) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Mode != unix.S_IFREG|initimage.ToolMode || st.Size != n.Size || st.Uid != uint32(os.Geteuid())) {
		err = errors.New("its content has changed")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// writeProgram replaces the file atomically: a session may be executing it.
func (e *Engine) writeProgram(name string) error {
	data, err := e.init.Binary(runtime.GOARCH) // its hash is checked
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(name)), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.File{Name: name, Data: data, Mode: initimage.ToolMode, Temp: filepath.Dir(filepath.Dir(name))}.Write()
}

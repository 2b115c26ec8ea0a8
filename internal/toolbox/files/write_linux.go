package files

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// Write is write_file.
func Write(ctx context.Context, a tool.WriteFileArgs) (*tool.WriteFileResult, error) {
	content, err := contentOf(a)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	t, err := resolve(a.Path, makeDirs)
	if err != nil {
		return nil, err
	}
	defer t.close()
	note, err := t.put(ctx, content, a.Executable)
	if err != nil {
		t.undo()
		return nil, explain(a.Path, err)
	}
	return &tool.WriteFileResult{Path: a.Path, Bytes: int64(len(content)), Created: t.old < 0, Note: note}, nil
}

// CheckWrite returns why [Write] would fail, as far as that shows without changing
// anything: nil is no promise.
func CheckWrite(ctx context.Context, a tool.WriteFileArgs) error {
	if _, err := contentOf(a); err != nil {
		return err
	}
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	t, err := resolve(a.Path, checkDirs)
	if err != nil {
		return err
	}
	defer t.close()
	return explain(a.Path, t.writable())
}

// contentOf returns the bytes to write.
func contentOf(a tool.WriteFileArgs) ([]byte, error) {
	content := []byte(a.Content)
	if a.Binary {
		var err error
		if content, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return nil, errors.New("content is not valid base64, but binary is set")
		}
	}
	if len(content) > tool.MaxWriteBytes {
		return nil, fmt.Errorf("content has %d bytes, at most %d can be written", len(content), tool.MaxWriteBytes)
	}
	return content, nil
}

// writable returns why the target can't be written. A file that is there is
// replaced, or written in place where its directory can't be written.
func (t *target) writable() error {
	if t.old >= 0 {
		// rename(2) doesn't ask whether the file that it replaces is writable.
		return mayWrite(t.old, unix.W_OK, unix.AT_EACCESS)
	}
	if t.dir == nil {
		return nil // it can be made: see checkDirs
	}
	return mayAdd(int(t.dir.Fd()))
}

// mayAdd returns why nothing can be made in a directory.
func mayAdd(dir int) error {
	return mayWrite(dir, unix.W_OK|unix.X_OK, 0)
}

// mayWrite is faccessat(2) of a handle. Where the mode is in the way of what is
// mounted read-only, the mount is the reason: no mode would help.
func mayWrite(fd int, mode uint32, flags int) error {
	err := unix.Faccessat(unix.AT_FDCWD, procPath(fd), mode, flags)
	var fs unix.Statfs_t
	if err == unix.EACCES && unix.Fstatfs(fd, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0 {
		return unix.EROFS
	}
	return err
}

// put writes the content into a new file and gives it the name, in one step: at
// no time is there half of it. Where the directory takes no new file, or the
// name is a mount of its own, the file itself is written, and note says so.
func (t *target) put(ctx context.Context, content []byte, executable bool) (note string, err error) {
	if err := t.writable(); err != nil {
		return "", err
	}
	if err = unix.EBUSY; !t.inPlace { // of a mount of its own rename(2) says so
		err = t.replace(ctx, content, executable)
	}
	switch {
	case err == nil || t.old < 0:
		return "", err
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS), errors.Is(err, unix.EBUSY), errors.Is(err, unix.EXDEV):
	default:
		return "", err
	}
	if err := t.overwrite(ctx, content, executable); err != nil {
		return "", err
	}
	return "the file was written in place, not replaced in one step: its directory is not writable, or the file is a mount point", nil
}

func (t *target) replace(ctx context.Context, content []byte, executable bool) (err error) {
	dir := int(t.dir.Fd())
	name := ".workshop-" + rand.Text()
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, t.mode(executable))
	})
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() {
		f.Close()
		if err != nil {
			_ = unix.Unlinkat(dir, name, 0)
		}
	}()
	if t.old >= 0 { // the umask is for new files
		if err := unix.Fchmod(fd, t.mode(executable)); err != nil {
			return err
		}
	}
	if err := writeAll(ctx, f, content); err != nil {
		return err
	}
	if err := f.Close(); err != nil { // NFS tells here that there was no space
		return err
	}
	return unix.Renameat(dir, name, dir, t.name)
}

// mode of the file: as it was, without the bits of set-user-ID and the like.
func (t *target) mode(executable bool) uint32 {
	mode := uint32(0o666)
	if t.old >= 0 {
		mode = t.st.Mode & 0o777
	}
	if executable {
		mode |= mode & 0o444 >> 2
	}
	return mode
}

func (t *target) overwrite(ctx context.Context, content []byte, executable bool) error {
	f, err := reopen(t.old, t.name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := ctx.Err(); err != nil {
		return err
	}
	// From here on it is done whatever the context says: half a file is worse.
	if _, err = f.Write(content); err == nil {
		err = f.Truncate(int64(len(content)))
	}
	if err == nil && executable {
		err = f.Chmod(os.FileMode(t.mode(true)))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("written in place, and only in part: %v", err)
	}
	return nil
}

func writeAll(ctx context.Context, f *os.File, b []byte) error {
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Write(b[:min(len(b), 16*chunk)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return ctx.Err()
}

//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"
)

func read(a args) (string, string) {
	n, err := strconv.Atoi(a.opt("bytes", "400"))
	if err != nil {
		return "ERROR", "bytes= is not a number"
	}
	f, err := os.Open(a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(n)))
	if err != nil {
		return seenOf(err)
	}
	return "ok", text(b)
}

func readlink(a args) (string, string) {
	to, err := os.Readlink(a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	return to, ""
}

func list(a args) (string, string) {
	all, err := os.ReadDir(a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return "empty", ""
	}
	slices.Sort(names)
	return strings.Join(names, ","), ""
}

func write(a args) (string, string) {
	body, change := a.opts["text"]
	_, err := os.Lstat(a.pos[0])
	isNew := errors.Is(err, fs.ErrNotExist)
	flags := os.O_WRONLY | os.O_CREATE
	if change {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(a.pos[0], flags, 0o644)
	if err != nil {
		return seenOf(err)
	}
	_, err = f.WriteString(body)
	err = errors.Join(err, f.Close())
	if isNew && !change {
		err = errors.Join(err, os.Remove(a.pos[0]))
	}
	return seenOf(err)
}

func mkdir(a args) (string, string) {
	err := os.Mkdir(a.pos[0], 0o755)
	if err == nil {
		err = os.Remove(a.pos[0])
	}
	return seenOf(err)
}

func rename(a args) (string, string) { return seenOf(os.Rename(a.pos[0], a.pos[1])) }
func remove(a args) (string, string) { return seenOf(os.Remove(a.pos[0])) }

func chmod(a args) (string, string) {
	mode, err := strconv.ParseUint(a.pos[0], 8, 32)
	if err != nil {
		return "ERROR", err.Error()
	}
	if err := unix.Chmod(a.pos[1], uint32(mode)); err != nil {
		return seenOf(err)
	}
	_, detail := stat(args{pos: a.pos[1:]})
	var st unix.Stat_t
	if err := unix.Stat(a.pos[1], &st); err != nil {
		return seenOf(err)
	}
	return fmt.Sprintf("%04o", st.Mode&0o7777), detail
}

// mknod tries a device that would be harmless: /dev/null.
func mknod(a args) (string, string) {
	err := unix.Mknod(a.pos[0], unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	if err == nil {
		err = os.Remove(a.pos[0])
	}
	return seenOf(err)
}

func stat(a args) (string, string) {
	info, err := os.Lstat(a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d %04o", st.Uid, st.Gid, st.Mode&0o7777), info.Mode().String() + " " + strconv.FormatInt(info.Size(), 10)
}

// fill writes until the size is reached or the file system is full, and
// removes the file: the size of a tmpfs.
func fill(a args) (string, string) {
	size, err := units.RAMInBytes(a.pos[1])
	if err != nil {
		return "ERROR", err.Error()
	}
	f, err := os.Create(a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer os.Remove(a.pos[0])
	defer f.Close()
	block := make([]byte, 1<<20)
	var done int64
	for done < size {
		n, err := f.Write(block[:min(int64(len(block)), size-done)])
		done += int64(n)
		if err != nil {
			seen, _ := seenOf(err)
			return seen, fmt.Sprintf("after %d bytes", done)
		}
	}
	return "ok", fmt.Sprintf("%d bytes", done)
}

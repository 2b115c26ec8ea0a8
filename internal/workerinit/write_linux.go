package workerinit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// checkWritable creates and removes a file in dir (B4). The error has the directory,
// its owner, the process's uid, and a hint.
func checkWritable(dir string) error {
	uid := os.Getuid()
	file, err := makeFile(dir)
	if err == nil {
		return file.ownedBy(uid, dir)
	}
	info, statErr := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist in the worker: the mount's source is missing on the host", dir)
	case errors.Is(err, unix.ENOTDIR):
		if f, err := os.OpenFile(dir, os.O_WRONLY, 0); err == nil { // a single file is mounted
			f.Close()
			return nil
		}
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s is mounted rw, but its file system is read-only: mount a directory of a writable file system, or drop `rw`", dir)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%s is full (%w)", dir, unwrapErrno(err))
	}
	if statErr != nil {
		return fmt.Errorf("%s is not writable for uid %d: %w", dir, uid, unwrapErrno(err))
	}
	var owner, group uint32
	if st, ok := statT(info); ok {
		owner, group = st.Uid, st.Gid
	}
	return fmt.Errorf("%s is not writable for uid %d (it belongs to %d:%d, mode %04o): on the host run `chown -R %d` on the mount's source, or set `user: \"%d:%d\"` in workshop.yaml (%w)",
		dir, uid, owner, group, info.Mode().Perm(), uid, owner, group, unwrapErrno(err))
}

// madeFile is the file of the test, to check its owner.
type madeFile struct{ owner uint32 }

func (f madeFile) ownedBy(uid int, dir string) error {
	if int(f.owner) == uid {
		return nil
	}
	return fmt.Errorf("a file that uid %d makes in %s belongs to uid %d: the mount's file system changes owners (NFS squash or user namespace mapping); mount a local directory", uid, dir, f.owner)
}

// makeFile creates a file without a name if the file system supports it (open(2),
// O_TMPFILE), so that nothing is left behind; otherwise one that it removes, as on NFS and
// gVisor. Several workers may do so in the same directory at the same time.
func makeFile(dir string) (madeFile, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		defer unix.Close(fd)
		return look(fd)
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) {
		return madeFile{}, err
	}
	return makeNamedFile(dir)
}

func makeNamedFile(dir string) (madeFile, error) {
	name := filepath.Join(dir, ".workshop-gate-"+rand.Text())
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return madeFile{}, err
	}
	defer unix.Close(fd)
	f, err := look(fd)
	return f, errors.Join(err, unix.Unlink(name))
}

func look(fd int) (madeFile, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return madeFile{st.Uid}, err
}

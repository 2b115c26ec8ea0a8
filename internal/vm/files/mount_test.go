package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// shared opens a directory as a share.
func shared(t testing.TB, root string, readOnly bool, l Limits) *Share {
	t.Helper()
	s, err := NewServer(l).Open(root, readOnly)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// mount lets this machine's kernel mount a share, in place of a guest's.
func mount(t *testing.T, s *Share) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := t.TempDir()
	o := s.s.options()
	o.DirectMountStrict, o.FsName, o.Options = true, "share", []string{"default_permissions"}
	server, err := fuse.NewServer(s.s.gate, dir, o)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skipf("no file system can be mounted by FUSE: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// step is one operation in a directory; its result is a line.
type step func(dir string, r *rand.Rand) string

func names(r *rand.Rand) string {
	return filepath.Join([]string{"", "a", "a/b", "d"}[r.IntN(4)], fmt.Sprintf("n%d", r.IntN(6)))
}

func said(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return fmt.Sprint(err)
}

// steps are what a program does with files.
var steps = []step{
	func(dir string, r *rand.Rand) string {
		flags := []int{os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_EXCL, os.O_WRONLY | os.O_TRUNC | os.O_CREATE, os.O_WRONLY | os.O_APPEND, os.O_RDONLY}[r.IntN(5)]
		mode := []uint32{0o644, 0o600, 0o755, 0o444}[r.IntN(4)]
		name, data, off := names(r), make([]byte, r.IntN(9000)), int64(r.IntN(5000))
		fd, err := unix.Open(filepath.Join(dir, name), flags|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		if err != nil {
			return said(err)
		}
		defer unix.Close(fd)
		n, err1 := unix.Pwrite(fd, data, off)
		m, err2 := unix.Pread(fd, make([]byte, 20000), off/2)
		return fmt.Sprint(n, said(err1), m, said(err2), said(unix.Fallocate(fd, r.Uint32N(4), off, 100)), said(unix.Fsync(fd)))
	},
	func(dir string, r *rand.Rand) string {
		return said(os.Mkdir(filepath.Join(dir, names(r)), os.FileMode(0o700|r.Uint32N(64))))
	},
	func(dir string, r *rand.Rand) string { return said(unix.Unlink(filepath.Join(dir, names(r)))) },
	func(dir string, r *rand.Rand) string { return said(unix.Rmdir(filepath.Join(dir, names(r)))) },
	func(dir string, r *rand.Rand) string {
		from, to, flags := names(r), names(r), []uint{0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}[r.IntN(4)]
		return said(unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, from), unix.AT_FDCWD, filepath.Join(dir, to), flags))
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Link(filepath.Join(dir, names(r)), filepath.Join(dir, names(r))))
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Symlink([]string{"n1", "a/n2", "../n3", "/etc/hostname"}[r.IntN(4)], filepath.Join(dir, names(r))))
	},
	func(dir string, r *rand.Rand) string {
		target, err := os.Readlink(filepath.Join(dir, names(r)))
		return target + said(err)
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Chmod(filepath.Join(dir, names(r)), r.Uint32N(0o2000)))
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Lchown(filepath.Join(dir, names(r)), r.IntN(3), r.IntN(3)))
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Truncate(filepath.Join(dir, names(r)), int64(r.IntN(20000))))
	},
	func(dir string, r *rand.Rand) string {
		at := unix.Timespec{Sec: int64(r.IntN(1 << 30)), Nsec: int64(r.IntN(1e9))}
		return said(unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, names(r)), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW))
	},
	func(dir string, r *rand.Rand) string {
		p, name := filepath.Join(dir, names(r)), fmt.Sprintf("user.x%d", r.IntN(2))
		b := make([]byte, 100)
		n, err := unix.Lgetxattr(p, name, b)
		return fmt.Sprint(max(n, 0), said(err), said(unix.Lsetxattr(p, name, []byte("value"), r.IntN(3))))
	},
	func(dir string, r *rand.Rand) string {
		return said(unix.Lremovexattr(filepath.Join(dir, names(r)), fmt.Sprintf("user.x%d", r.IntN(2))))
	},
	func(dir string, r *rand.Rand) string {
		kind := []uint32{unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK}[r.IntN(3)]
		return said(unix.Mknod(filepath.Join(dir, names(r)), kind|0o640, 0))
	},
	func(dir string, r *rand.Rand) string { // a file that is used after its name is gone
		p := filepath.Join(dir, names(r))
		if info, err := os.Lstat(p); err == nil && !info.Mode().IsRegular() {
			return "" // a share has no open file of the others
		}
		f, err := os.OpenFile(p, os.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			return said(err)
		}
		defer f.Close()
		err = unix.Unlink(p)
		_, err2 := f.WriteString("after")
		info, err3 := f.Stat()
		return fmt.Sprint(said(err), said(err2), info.Size(), said(err3), said(f.Truncate(3)), said(f.Chmod(0o600)))
	},
	func(dir string, r *rand.Rand) string {
		fd, err := unix.Open(filepath.Join(dir, "a"), unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return said(err)
		}
		defer unix.Close(fd)
		n, err := unix.Pwrite(fd, []byte("nameless"), 3)
		return fmt.Sprint(n, said(err))
	},
}

// entry is what a file is, without times that only the clock sets.
type entry struct {
	Path, Mode, Link, Data string
	Size                   int64
	Nlink                  uint64
	UID, GID               uint32
	Old                    int64 // a time that was set
	Xattrs                 []string
}

// tree is everything in a directory.
func tree(t *testing.T, dir string) (all []entry) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		e := entry{Path: p[len(dir):], Mode: fmt.Sprintf("%o", st.Mode), UID: st.Uid, GID: st.Gid}
		if st.Mtim.Sec < 1<<30 {
			e.Old = st.Mtim.Nano()
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			e.Nlink, e.Size = uint64(st.Nlink), st.Size
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(p)
			e.Data = string(data) + said(err)
		case unix.S_IFLNK:
			e.Link, _ = os.Readlink(p)
		}
		b := make([]byte, 1000)
		if n, _ := unix.Llistxattr(p, b); n > 0 {
			e.Xattrs = strings.Split(string(b[:n]), "\x00")
			slices.Sort(e.Xattrs)
		}
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// TestLikeADirectory: through a share, with a kernel as its guest, programs find what they
// find in a directory, and leave the same behind.
func TestLikeADirectory(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			plain, root := t.TempDir(), t.TempDir()
			for _, dir := range []string{plain, root} {
				for _, sub := range []string{"a/b", "d"} {
					if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := shared(t, root, false, Limits{})
			mounted := mount(t, s)
			choose := rand.New(rand.NewPCG(seed, 1))
			for i := range 1500 {
				k, random := choose.IntN(len(steps)), choose.Uint64()
				want := steps[k](plain, rand.New(rand.NewPCG(random, 0)))
				got := steps[k](mounted, rand.New(rand.NewPCG(random, 0)))
				if got != want {
					t.Fatalf("step %d, kind %d: %s, want %s", i, k, got, want)
				}
			}
			want := tree(t, plain)
			if diff := gocmp.Diff(want, tree(t, mounted)); diff != "" {
				t.Errorf("through the share (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(want, tree(t, root)); diff != "" {
				t.Errorf("in the directory (-want +got):\n%s", diff)
			}
			data, _ := json.Marshal(want)
			if len(data) < 1000 {
				t.Errorf("the steps left only %s", data)
			}
		})
	}
}

// TestHostsChanges: what the host puts in a file's place is seen when the file is opened or
// looked at, not half and not later; another change after the timeout.
func TestHostsChanges(t *testing.T) {
	root := t.TempDir()
	mounted := mount(t, shared(t, root, false, Limits{}))
	write := func(dir, name, data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(mounted, "a", "guest")
	old, err := os.Open(filepath.Join(mounted, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for i := range 20 {
		want := strings.Repeat("by the host ", i)
		write(root, "new", want)
		if err := os.Rename(filepath.Join(root, "new"), filepath.Join(root, "a")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(mounted, "a"))
		if string(data) != want || err != nil {
			t.Fatalf("%q, %v, want %q", data, err, want)
		}
	}
	if data, err := io.ReadAll(old); string(data) != "guest" || err != nil {
		t.Errorf("the file that was open before is %q, %v", data, err)
	}
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Lstat(filepath.Join(mounted, "a")); errors.Is(err, unix.ENOENT) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a file that was removed is still there")
		}
	}
}

package root

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/erofs/go-erofs"
	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// makeRoot makes a directory with everything that a root has. Times that aren't set
// would be those of the clock.
func makeRoot(t *testing.T, dir string) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"etc", "usr/bin", "var/empty", "tmp", "many"} {
		must(os.MkdirAll(at(d), 0o755))
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	for name, data := range map[string][]byte{
		"etc/hostname": []byte("guest\n"), "etc/empty": nil, "usr/bin/program": big, "etc/block": big[:4096], "etc/almost": big[:4095], "etc/more": big[:4097],
		"usr/" + strings.Repeat("n", 255): []byte("long"), "etc/ünïcode": []byte("x"), "etc/secret": []byte("for its owner"),
	} {
		must(os.WriteFile(at(name), data, 0o644))
	}
	for i := range 3000 { // a directory of several blocks
		must(os.WriteFile(at(fmt.Sprintf("many/file-%04d", i)), []byte(strconv.Itoa(i)), 0o600))
	}
	must(os.Chmod(dir, 0o755))
	must(os.Chmod(at("etc/secret"), 0o400))
	must(os.Chmod(at("tmp"), 0o1777))
	must(os.Symlink("../etc/hostname", at("usr/link")))
	must(os.Symlink(strings.Repeat("a/", 2000), at("usr/long")))
	must(os.Symlink("/nowhere", at("usr/dangling")))
	must(os.Link(at("etc/hostname"), at("etc/hard")))
	hole, err := os.Create(at("hole"))
	must(err)
	_, err = hole.WriteAt([]byte("end"), 64<<20)
	must(err)
	must(hole.Close())
	if os.Geteuid() == 0 {
		must(os.Lchown(at("etc/secret"), 4711, 100_000))
		must(os.Lchown(at("usr/link"), 65532, 65532))
		must(unix.Setxattr(at("usr/bin/program"), "security.capability", []byte("\x01\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0))
	}
	n := int64(0)
	must(filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		n++
		ts := unix.Timespec{Sec: 1_600_000_000 + n, Nsec: n}
		return errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
	}))
	return dir
}

// write writes an image, and returns its path.
func write(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "root.erofs"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Write(t.Context(), f, dir); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// entryOf is what a file is, but for its number of links.
type entryOf struct {
	Mode     fs.FileMode
	UID, GID uint32
	Time     time.Time
	Size     int64
	Data     string
	Links    uint64 // of a directory
}

// list reads a tree, which a kernel has mounted or not.
func list(t *testing.T, root string) map[string]entryOf {
	t.Helper()
	all := map[string]entryOf{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		st := i.Sys().(*syscall.Stat_t)
		e := entryOf{Mode: i.Mode(), UID: st.Uid, GID: st.Gid, Time: i.ModTime()}
		switch {
		case i.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			e.Size, e.Data = i.Size(), string(bytes.TrimLeft(data, "\x00"))
		case i.IsDir():
			e.Links = uint64(st.Nlink)
		default:
			if e.Data, err = os.Readlink(p); err != nil {
				return err
			}
		}
		all[p[len(root):]] = e
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// mountImage mounts an image by a loop device.
func mountImage(t *testing.T, file string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop devices: %v", err)
	}
	defer control.Close()
	image, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	var loop *os.File
	for range 20 { // somebody else may take the free one
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Skipf("no loop devices: %v", err)
		}
		if loop, err = os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDONLY, 0); err != nil {
			t.Skipf("no loop devices: %v", err)
		}
		config := unix.LoopConfig{Fd: uint32(image.Fd())}
		config.Info.Flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, loop.Fd(), unix.LOOP_CONFIGURE, uintptr(unsafe.Pointer(&config)))
		if errno == 0 {
			break
		}
		loop.Close()
		loop = nil
	}
	if loop == nil {
		t.Skip("no loop device")
	}
	defer loop.Close()
	dir := t.TempDir()
	if err := unix.Mount(loop.Name(), dir, "erofs", unix.MS_RDONLY, ""); err == unix.ENODEV {
		t.Skip("the kernel has no EROFS")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestMounted: a kernel finds in the image what is in the directory.
func TestMounted(t *testing.T) {
	dir := makeRoot(t, t.TempDir())
	mounted := mountImage(t, write(t, dir))
	if diff := gocmp.Diff(list(t, dir), list(t, mounted)); diff != "" {
		t.Errorf("-directory +image:\n%.4000s", diff)
	}
	if n, err := unix.Getxattr(filepath.Join(mounted, "usr/bin/program"), "security.capability", nil); err == nil {
		t.Errorf("a capability of %d bytes", n)
	}
	if err := os.WriteFile(filepath.Join(mounted, "new"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("it can be written: %v", err)
	}
}

// TestRead: as far as a reader without privilege says.
func TestRead(t *testing.T) {
	dir := makeRoot(t, t.TempDir())
	f, err := os.Open(write(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := erofs.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = fs.WalkDir(img, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		seen++
		want, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		got, err := d.Info()
		if err != nil {
			return err
		}
		st, sys := want.Sys().(*syscall.Stat_t), got.Sys().(*erofs.Stat)
		if got.Mode().String() != want.Mode().String() || !got.ModTime().Equal(want.ModTime()) || sys.UID != st.Uid || sys.GID != st.Gid || len(sys.Xattrs) != 0 {
			t.Errorf("%s is %v %v %d:%d %v, want %v %v %d:%d", name, got.Mode(), got.ModTime(), sys.UID, sys.GID, sys.Xattrs, want.Mode(), want.ModTime(), st.Uid, st.Gid)
		}
		if !want.Mode().IsRegular() || want.Size() > 1<<20 {
			return nil
		}
		data, err := fs.ReadFile(img, name)
		if err != nil {
			return err
		}
		if wantData, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(data, wantData) {
			t.Errorf("%s has %d bytes, want %d (%v)", name, len(data), len(wantData), err)
		}
		return nil
	})
	if want := len(list(t, dir)); err != nil || seen != want {
		t.Errorf("%d entries of %d, %v", seen, want, err)
	}
}

// TestChecked: the format's own checker has nothing to say.
func TestChecked(t *testing.T) {
	if _, err := exec.LookPath("fsck.erofs"); err != nil {
		t.Skip("no fsck.erofs (erofs-utils)")
	}
	if out, err := exec.Command("fsck.erofs", "--extract", write(t, makeRoot(t, t.TempDir()))).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSameBytes: the same files are the same image, at another time, elsewhere and on
// another file system.
func TestSameBytes(t *testing.T) {
	elsewhere, err := os.MkdirTemp("/dev/shm", "root")
	if err != nil {
		elsewhere = t.TempDir()
	}
	defer os.RemoveAll(elsewhere)
	var images [2][]byte
	for i, dir := range []string{makeRoot(t, t.TempDir()), makeRoot(t, elsewhere)} {
		data, err := os.ReadFile(write(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		images[i] = data
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Errorf("images of %d and %d bytes differ", len(images[0]), len(images[1]))
	}
	// Of struct erofs_super_block (fs/erofs/erofs_fs.h).
	const superblock, buildTime = 1024, 24
	if sec := binary.LittleEndian.Uint64(images[0][superblock+buildTime:]); sec != 0 {
		t.Errorf("it was built at %d", sec)
	}
}

// TestHoles: what is zero in a file takes no place in the image.
func TestHoles(t *testing.T) {
	var st unix.Stat_t
	if err := unix.Stat(write(t, makeRoot(t, t.TempDir())), &st); err != nil {
		t.Fatal(err)
	}
	if st.Size < 64<<20 || st.Blocks*512 > 32<<20 {
		t.Errorf("an image of %d bytes takes %d", st.Size, st.Blocks*512)
	}
}

// TestFewDescriptors: it needs no descriptor for each file.
func TestFewDescriptors(t *testing.T) {
	dir := makeRoot(t, t.TempDir())
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	write(t, dir)
}

// TestRefused: what would be a device or a channel in each guest.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Write(t.Context(), f, dir); err == nil || !strings.Contains(err.Error(), `"fifo" is neither`) {
		t.Errorf("a FIFO: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, f, makeRoot(t, t.TempDir())); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := Write(t.Context(), f, "/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

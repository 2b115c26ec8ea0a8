package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNames: a name is one component of a path; each operation that has one refuses others.
func TestNames(t *testing.T) {
	root, _ := makeShare(t)
	g := newGuest(t, root, false, Limits{})
	create := []any{uint32(os.O_RDWR), uint32(0o644), uint32(0), uint32(0)}
	for name, want := range map[string]unix.Errno{
		"": unix.EINVAL, ".": unix.EINVAL, "..": unix.EINVAL, "../secret": unix.EINVAL, "/etc/passwd": unix.EINVAL, "dir/file": unix.EINVAL, "dir/": unix.EINVAL,
		strings.Repeat("n", 256): unix.ENAMETOOLONG,
	} {
		for op, body := range map[uint32][]any{
			opLookup: {name, "\x00"}, opUnlink: {name, "\x00"}, opRmdir: {name, "\x00"}, opSymlink: {name, "\x00target\x00"},
			opMkdir: {uint32(0o755), uint32(0), name, "\x00"}, opMknod: {uint32(0o100644), uint32(0), uint32(0), uint32(0), name, "\x00"},
			opRename: {uint64(rootID), name, "\x00to\x00"}, opRename2: {uint64(rootID), uint32(0), uint32(0), "file\x00", name, "\x00"},
			opLink: {g.mustLookup("file"), name, "\x00"}, opCreate: append(append([]any{}, create...), name, "\x00"),
		} {
			if _, errno := g.do(op, rootID, body...); errno != want {
				t.Errorf("operation %d with the name %.20q: %v, want %v", op, name, errno, want)
			}
		}
	}
	if _, errno := g.do(opLookup, rootID, "file"); errno != 0 { // without its NUL
		t.Errorf("a name without an end: %v", errno)
	}
	// What comes after a NUL is not part of a name.
	if node, errno := g.lookup(rootID, "file\x00/../../secret"); errno != 0 || node != g.mustLookup("file") {
		t.Errorf("a name with a NUL: node %d, %v", node, errno)
	}
	if got := fmt.Sprint(entries(t, root)); got != "[dir file link]" {
		t.Errorf("the share has %s", got)
	}
}

// TestLinksLeadNowhere: a link is a link for the guest; nothing is done where it leads.
func TestLinksLeadNowhere(t *testing.T) {
	root, secret := makeShare(t)
	g := newGuest(t, root, false, Limits{})
	link := g.mustLookup("link")
	if _, errno := g.open(opOpen, link, 0); errno == 0 {
		t.Error("it can be opened")
	}
	if _, errno := g.lookup(link, "file"); errno == 0 {
		t.Error("something can be looked up in it")
	}
	// A node that was a file, or a directory, when it was looked up.
	file, dir := g.mustLookup("file"), g.mustLookup("dir")
	for _, name := range []string{"file", "dir"} {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(root, "file")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(root, "dir")); err != nil {
		t.Fatal(err)
	}
	if _, errno := g.open(opOpen, file, 0); errno == 0 {
		t.Error("a link can be opened in place of a file")
	}
	if _, errno := g.lookup(dir, "secret"); errno == 0 {
		t.Error("a link leads on in place of a directory")
	}
	if _, errno := g.do(opMkdir, dir, uint32(0o755), uint32(0), "made\x00"); errno == 0 {
		t.Error("something can be made through it")
	}
	const mode, size = 1 << 0, 1 << 3
	for _, valid := range []uint32{mode, size, mode | size} {
		if _, errno := g.do(opSetattr, file, valid, uint32(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint32(0), uint32(0), uint32(0), uint32(0o777), uint32(0), uint32(0), uint32(0), uint32(0)); errno == 0 {
			t.Errorf("attributes %d are set through it", valid)
		}
	}
	info, err := os.Stat(secret)
	if err != nil || info.Mode() != 0o644 || info.Size() != 7 {
		t.Errorf("outside is %v, %v", info, err)
	}
}

// TestChmodByProc: kernels before 6.6 change a file that can't be read, and no link's.
func TestChmodByProc(t *testing.T) {
	root, secret := makeShare(t)
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	for name, want := range map[string]unix.Errno{"file": 0, "dir": 0, "link": unix.EOPNOTSUPP, "none": unix.ENOENT} {
		for _, mode := range []uint32{0, 0o751} {
			if errno := chmodByProc(place{dir, name}, mode); errno != want {
				t.Errorf("%s: %v, want %v", name, errno, want)
			}
		}
		if info, err := os.Stat(filepath.Join(root, name)); want == 0 && (err != nil || info.Mode().Perm() != 0o751) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if info, err := os.Stat(secret); err != nil || info.Mode() != 0o644 {
		t.Errorf("what the link leads to: %v, %v", info, err)
	}
}

// TestSwappedWhileWalking: whoever swaps a directory for a link, again and again, gets
// nobody out of the share.
func TestSwappedWhileWalking(t *testing.T) {
	root, secret := makeShare(t)
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dir/secret"), []byte("decoy"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, root, false, Limits{})
	dir, file := g.mustLookup("dir"), g.mustLookup("dir/secret")
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "dir"), unix.AT_FDCWD, filepath.Join(root, "out"), unix.RENAME_EXCHANGE)
			}
		}
	})
	read := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		g.do(opMkdir, dir, uint32(0o755), uint32(0), "made\x00")
		g.do(opUnlink, dir, "share\x00")
		if node, errno := g.lookup(dir, "secret"); errno == 0 {
			file = node
		}
		fh, errno := g.open(opOpen, file, uint32(os.O_RDWR))
		if errno != 0 {
			continue
		}
		data, errno := g.read(file, fh, 100)
		if errno == 0 && string(data) != "decoy" {
			t.Fatalf("read %q", data)
		}
		read++
		g.do(opRelease, file, fh, uint32(0), uint32(0), uint64(0))
	}
	close(stop)
	swaps.Wait()
	if read == 0 {
		t.Error("nothing was read at all")
	}
	if got := fmt.Sprint(entries(t, filepath.Dir(root))); got != "[secret share]" {
		t.Errorf("beside the share is %s", got)
	}
}

// TestReadOnly: a share that is read-only refuses every change, whoever the host's files
// belong to.
func TestReadOnly(t *testing.T) {
	root, _ := makeShare(t)
	before := tree(t, root)
	g := newGuest(t, root, true, Limits{})
	file, dir := g.mustLookup("file"), g.mustLookup("dir")
	fh, errno := g.open(opOpen, file, 0)
	if data, errno2 := g.read(file, fh, 100); errno != 0 || errno2 != 0 || string(data) != "inside" {
		t.Errorf("it can't be read: %v, %v, %q", errno, errno2, data)
	}
	for _, flags := range []int{os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, 3} {
		if _, errno := g.open(opOpen, file, uint32(flags)); errno != unix.EROFS {
			t.Errorf("open with %#x: %v", flags, errno)
		}
	}
	for op, body := range map[uint32][]any{
		opSetattr: {uint32(1), make([]byte, 84)}, opSymlink: {"n\x00t\x00"}, opMknod: {uint32(0o100644), uint32(0), uint64(0), "n\x00"}, opMkdir: {uint64(0o755), "n\x00"},
		opUnlink: {"file\x00"}, opRmdir: {"dir\x00"}, opRename: {dir, "file\x00n\x00"}, opRename2: {dir, uint64(0), "file\x00n\x00"}, opLink: {file, "n\x00"},
		opWrite: {fh, uint64(0), uint32(1), make([]byte, 20), "x"}, opSetxattr: {uint32(1), uint32(0), "user.a\x00x"}, opRemovexattr: {"user.a\x00"},
		opCreate: {uint32(os.O_RDWR), uint32(0o644), uint64(0), "n\x00"}, opFallocate: {fh, uint64(0), uint64(100), uint64(0)},
		opCopyRange: {fh, uint64(0), file, fh, uint64(0), uint64(1), uint64(0)}, opTmpfile: {uint32(os.O_RDWR), uint32(0o644), uint64(0), "/\x00"},
	} {
		node := uint64(rootID)
		if op == opWrite || op == opSetattr || op == opFallocate || op == opCopyRange || op == opSetxattr || op == opRemovexattr {
			node = file
		}
		if _, errno := g.do(op, node, body...); errno != unix.EROFS {
			t.Errorf("operation %d: %v, want %v", op, errno, unix.EROFS)
		}
	}
	if after := tree(t, root); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the share is now %v", after)
	}
}

// TestNotPlanted: what the host's kernel or a program there could later act on isn't made.
func TestNotPlanted(t *testing.T) {
	root, _ := makeShare(t)
	g := newGuest(t, root, false, Limits{})
	for _, mode := range []uint32{unix.S_IFCHR, unix.S_IFBLK, unix.S_IFDIR, unix.S_IFLNK, 0} {
		for _, dev := range []uint32{0, uint32(unix.Mkdev(1, 3))} {
			if _, errno := g.do(opMknod, rootID, mode|0o666, dev, uint64(0), "dev\x00"); errno != unix.EPERM {
				t.Errorf("mknod of type %o, device %#x: %v", mode, dev, errno)
			}
		}
	}
	if _, errno := g.do(opRename2, rootID, uint64(rootID), uint32(unix.RENAME_WHITEOUT), uint32(0), "file\x00moved\x00"); errno != unix.EINVAL {
		t.Errorf("a rename that leaves a whiteout: %v", errno)
	}
	if _, errno := g.do(opCreate, rootID, uint32(os.O_RDWR), uint32(0o106755), uint64(0), "created\x00"); errno != 0 {
		t.Errorf("create: %v", errno)
	}
	if _, errno := g.do(opMknod, rootID, uint32(0o106755), uint32(0), uint64(0), "made\x00"); errno != 0 {
		t.Errorf("mknod: %v", errno)
	}
	file := g.mustLookup("file")
	if _, errno := g.do(opSetattr, file, uint32(1), make([]byte, 64), uint32(0o6755), make([]byte, 16)); errno != 0 {
		t.Errorf("chmod: %v", errno)
	}
	for _, name := range []string{"created", "made", "file"} {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("%s has mode %v, %v, want 0755", name, info.Mode(), err)
		}
	}
	for name, want := range map[string]unix.Errno{
		"security.capability": unix.EPERM, "security.selinux": unix.EPERM, "trusted.overlay.opaque": unix.EPERM, "user.overlay.opaque": unix.EPERM,
		"system.posix_acl_access": unix.EOPNOTSUPP, "": unix.EPERM, "user": unix.EPERM, "user.a": 0,
	} {
		if _, errno := g.do(opSetxattr, file, uint32(1), uint32(0), name, "\x00x"); errno != want {
			t.Errorf("set %q: %v, want %v", name, errno, want)
		}
	}
	if os.Geteuid() == 0 {
		if err := unix.Lsetxattr(filepath.Join(root, "file"), "trusted.host", []byte("x"), 0); err == nil {
			if _, errno := g.do(opGetxattr, file, uint32(100), uint32(0), "trusted.host\x00"); errno != unix.ENODATA {
				t.Errorf("get trusted.host: %v", errno)
			}
			if _, errno := g.do(opRemovexattr, file, "trusted.host\x00"); errno != unix.ENODATA {
				t.Errorf("remove trusted.host: %v", errno)
			}
		}
	}
	if list, errno := g.do(opListxattr, file, uint32(1000), uint32(0)); errno != 0 || string(list) != "user.a\x00" {
		t.Errorf("the list is %q, %v", list, errno)
	}
}

// TestNothingBlocks: a file that isn't regular isn't opened, and none of its peers waits.
func TestNothingBlocks(t *testing.T) {
	root, _ := makeShare(t)
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, root, false, Limits{})
	fifo, file := g.mustLookup("fifo"), g.mustLookup("file")
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		if _, errno := g.open(opOpen, fifo, uint32(flags)); errno != unix.EPERM {
			t.Errorf("open with %d: %v", flags, errno)
		}
	}
	// It takes a file's place.
	if err := os.Rename(filepath.Join(root, "fifo"), filepath.Join(root, "file")); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		if _, errno := g.open(opOpen, file, uint32(flags)); errno != unix.EPERM && errno != unix.ENXIO {
			t.Errorf("open in place of a file with %d: %v", flags, errno)
		}
	}
	if _, errno := g.do(opCreate, rootID, uint32(os.O_RDWR), uint32(0o644), uint64(0), "file\x00"); errno != unix.EPERM {
		t.Errorf("create in its place: %v", errno)
	}
}

// TestUnknown: what the guest wasn't given, or gave back, it can't use.
func TestUnknown(t *testing.T) {
	root, _ := makeShare(t)
	g := newGuest(t, root, false, Limits{})
	file, dir := g.mustLookup("file"), g.mustLookup("dir")
	fh, _ := g.open(opOpen, file, 0)
	dh, _ := g.open(opOpendir, dir, 0)
	for _, node := range []uint64{0, 99, ^uint64(0), 1 << 63} {
		if _, errno := g.do(opGetattr, node, uint64(0), uint64(0)); errno == 0 {
			t.Errorf("node %d has attributes", node)
		}
		g.do(opForget, node, uint64(1))
		g.do(opBatchForget, 0, uint32(1), uint32(0), node, uint64(1))
	}
	for _, tt := range []struct{ node, fh uint64 }{{file, 0}, {file, 99}, {file, ^uint64(0)}, {dir, fh}, {rootID, fh}, {file, dh}, {dir, dh}} {
		if _, errno := g.read(tt.node, tt.fh, 10); errno != unix.EBADF {
			t.Errorf("read of %d by %d: %v", tt.node, tt.fh, errno)
		}
		if tt.fh != dh || tt.node != dir {
			g.do(opReleasedir, tt.node, tt.fh, uint64(0), uint64(0))
			g.do(opRelease, tt.node, tt.fh, uint64(0), uint64(0))
		}
	}
	for range 3 { // twice is nothing
		g.do(opRelease, file, fh, uint64(0), uint64(0))
		g.do(opReleasedir, dir, dh, uint64(0), uint64(0))
	}
	g.do(opForget, rootID, ^uint64(0))
	g.do(opForget, file, uint64(1000))
	g.do(opForget, file, uint64(1))
	g.do(opForget, file, uint64(1))
	if _, errno := g.do(opGetattr, file, uint64(0), uint64(0)); errno != unix.ESTALE {
		t.Errorf("a forgotten node: %v", errno)
	}
	if _, errno := g.lookup(rootID, "file"); errno != 0 {
		t.Errorf("it can't be looked up again: %v", errno)
	}
	if open, nodes := g.s.s.gate.budget.open.Load(), g.s.s.gate.budget.nodes.Load(); open != 0 || nodes != 2 {
		t.Errorf("%d open files and %d nodes, want 0 and 2", open, nodes)
	}
}

// TestForgottenBeforeReleased: the queue for forgetting may overtake the other.
func TestForgottenBeforeReleased(t *testing.T) {
	root, _ := makeShare(t)
	g := newGuest(t, root, false, Limits{})
	file := g.mustLookup("file")
	fh, _ := g.open(opOpen, file, 0)
	g.do(opForget, file, uint64(1))
	if data, errno := g.read(file, fh, 10); errno != 0 || string(data) != "inside" {
		t.Errorf("read %q, %v", data, errno)
	}
	g.do(opRelease, file, fh, uint64(0), uint64(0))
	if nodes, open := len(g.s.s.gate.known), g.s.s.gate.budget.open.Load(); nodes != 1 || open != 0 {
		t.Errorf("%d nodes, %d open files are left", nodes-1, open)
	}
}

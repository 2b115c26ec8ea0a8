package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// guest sends requests to a share as bytes.
type guest struct {
	t      testing.TB
	s      *Share
	unique uint64
}

// words is a body of numbers: 4 bytes for a uint32, 8 for a uint64.
func words(all ...any) []byte {
	var b bytes.Buffer
	for _, v := range all {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		default:
			binary.Write(&b, binary.NativeEndian, v)
		}
	}
	return b.Bytes()
}

// in is a request.
func (g *guest) in(op uint32, node uint64, body []byte) []byte {
	g.unique++
	return append(words(uint32(inHeaderSize+len(body)), op, g.unique, node, uint32(0), uint32(0), uint32(0), uint32(0)), body...)
}

// do sends a request, and returns the body of the answer.
func (g *guest) do(op uint32, node uint64, body ...any) ([]byte, unix.Errno) {
	g.t.Helper()
	out := make([]byte, bufferSize)
	n, err := g.s.s.request(g.in(op, node, words(body...)), out)
	if err != nil {
		g.t.Fatalf("operation %d: %v", op, err)
	}
	if n == 0 {
		return nil, 0
	}
	if size := binary.NativeEndian.Uint32(out); int(size) != n || binary.NativeEndian.Uint64(out[8:]) != g.unique {
		g.t.Fatalf("operation %d: an answer of %d bytes says %d, to request %d", op, n, size, binary.NativeEndian.Uint64(out[8:]))
	}
	return out[outHeaderSize:n], unix.Errno(-int32(binary.NativeEndian.Uint32(out[4:])))
}

// newGuest mounts a share.
func newGuest(t testing.TB, root string, readOnly bool, l Limits) *guest {
	t.Helper()
	g := &guest{t: t, s: shared(t, root, readOnly, l)}
	if _, errno := g.do(opInit, 0, uint32(7), uint32(38), uint32(1<<17), ^uint32(0)&^(1<<30), uint32(0), [11]uint32{}); errno != 0 {
		t.Fatalf("init: %v", errno)
	}
	return g
}

// lookup returns a node.
func (g *guest) lookup(dir uint64, name string) (uint64, unix.Errno) {
	b, errno := g.do(opLookup, dir, name+"\x00")
	if errno != 0 {
		return 0, errno
	}
	return binary.NativeEndian.Uint64(b), 0
}

func (g *guest) mustLookup(name string) uint64 {
	g.t.Helper()
	node := uint64(rootID)
	for _, part := range strings.Split(name, "/") {
		var errno unix.Errno
		if node, errno = g.lookup(node, part); errno != 0 {
			g.t.Fatalf("look up %s: %v", name, errno)
		}
	}
	return node
}

// open opens a node, and returns the number of the open file.
func (g *guest) open(op uint32, node uint64, flags uint32) (uint64, unix.Errno) {
	b, errno := g.do(op, node, flags, uint32(0))
	if errno != 0 {
		return 0, errno
	}
	return binary.NativeEndian.Uint64(b), 0
}

// read reads from a file's beginning.
func (g *guest) read(node, fh uint64, size uint32) ([]byte, unix.Errno) {
	return g.do(opRead, node, fh, uint64(0), size, uint32(0), uint64(0), uint32(0), uint32(0))
}

// place makes a directory with a secret beside a share, and a few files in the share.
func share1(t testing.TB) (root, secret string) {
	t.Helper()
	top := t.TempDir()
	root, secret = filepath.Join(top, "share"), filepath.Join(top, "secret")
	for name, data := range map[string]string{"secret": "outside", "share/file": "inside", "share/dir/file": "deep inside"} {
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	return root, secret
}

// TestNames: a name is one component of a path; each operation that has one refuses others.
func TestNames(t *testing.T) {
	root, _ := share1(t)
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
	if got := fmt.Sprint(names2(t, root)); got != "[dir file link]" {
		t.Errorf("the share has %s", got)
	}
}

func names2(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestLinksLeadNowhere: a link is a link for the guest; nothing is done where it leads.
func TestLinksLeadNowhere(t *testing.T) {
	root, secret := share1(t)
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

// TestSwappedWhileWalking: whoever swaps a directory for a link, again and again, gets
// nobody out of the share.
func TestSwappedWhileWalking(t *testing.T) {
	root, secret := share1(t)
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
	if got := fmt.Sprint(names2(t, filepath.Dir(root))); got != "[secret share]" {
		t.Errorf("beside the share is %s", got)
	}
}

// TestReadOnly: a share that is read-only refuses every change, whoever the host's files
// belong to.
func TestReadOnly(t *testing.T) {
	root, _ := share1(t)
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
	root, _ := share1(t)
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
	root, _ := share1(t)
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
	root, _ := share1(t)
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
	if open, nodes := g.s.gate.budget.open.Load(), g.s.gate.budget.nodes.Load(); open != 0 || nodes != 2 {
		t.Errorf("%d open files and %d nodes, want 0 and 2", open, nodes)
	}
}

// TestForgottenBeforeReleased: the queue for forgetting may overtake the other.
func TestForgottenBeforeReleased(t *testing.T) {
	root, _ := share1(t)
	g := newGuest(t, root, false, Limits{})
	file := g.mustLookup("file")
	fh, _ := g.open(opOpen, file, 0)
	g.do(opForget, file, uint64(1))
	if data, errno := g.read(file, fh, 10); errno != 0 || string(data) != "inside" {
		t.Errorf("read %q, %v", data, errno)
	}
	g.do(opRelease, file, fh, uint64(0), uint64(0))
	if nodes, open := len(g.s.gate.known), g.s.gate.budget.open.Load(); nodes != 1 || open != 0 {
		t.Errorf("%d nodes, %d open files are left", nodes-1, open)
	}
}

// TestRequests: lengths that lie, operations that nobody has, answers without room.
func TestRequests(t *testing.T) {
	root, _ := share1(t)
	g := newGuest(t, root, false, Limits{})
	out := make([]byte, bufferSize)
	for name, in := range map[string][]byte{
		"empty": nil, "short": make([]byte, inHeaderSize-1), "without a length": make([]byte, inHeaderSize), "a longer one": g.in(opGetattr, 1, make([]byte, 16))[:50],
		"a shorter one": append(g.in(opGetattr, 1, make([]byte, 16)), 0),
	} {
		if _, err := g.s.s.request(in, out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for op := range uint32(200) {
		known := op < uint32(len(operations)) && operations[op]
		if _, errno := g.do(op, rootID); !known && errno != unix.ENOSYS {
			t.Errorf("operation %d: %v", op, errno)
		}
		if op == opInit || op == opDestroy {
			continue
		}
		for _, body := range []int{1, 8, 16, 40, 88} {
			g.do(op, rootID, bytes.Repeat([]byte{0xff}, body))
		}
	}
	file := g.mustLookup("file")
	fh, _ := g.open(opOpen, file, 0)
	for _, size := range []uint32{1 << 31, ^uint32(0), bufferSize} {
		if _, errno := g.read(file, fh, size); errno != unix.EIO {
			t.Errorf("read of %d bytes: %v", size, errno)
		}
	}
	if n, err := g.s.s.request(g.in(opRead, file, words(fh, uint64(0), uint32(100), uint32(0), uint64(0), uint64(0))), out[:outHeaderSize]); err != nil || n != outHeaderSize {
		t.Errorf("read without room: %d, %v", n, err)
	}
	if _, err := g.s.s.request(g.in(opRead, file, words(fh, uint64(0), uint32(100), uint32(0), uint64(0), uint64(0))), out[:3]); err == nil {
		t.Error("an answer without room for its header is no error")
	}
	if _, errno := g.do(opInit, 0, uint32(7), uint32(38), make([]byte, 56)); errno != unix.EBUSY {
		t.Errorf("mounted twice: %v", errno)
	}
	extended := g.in(opGetattr, rootID, make([]byte, 16))
	extended[36] = 1
	if n, err := g.s.s.request(extended, out); err != nil || unix.Errno(-int32(binary.NativeEndian.Uint32(out[4:n]))) != unix.EINVAL {
		t.Errorf("with an extension: %d, %v", n, err)
	}
	unmounted := &guest{t: t, s: shared(t, root, false, Limits{})}
	if _, err := unmounted.s.s.request(unmounted.in(opGetattr, rootID, make([]byte, 16)), out); err == nil {
		t.Error("a request before the share is mounted is no error")
	}
}

// TestLimits: how many files the guest knows and has open is bounded, and so is the memory
// for them.
func TestLimits(t *testing.T) {
	root, _ := share1(t)
	const nodes, open = 5000, 50
	g := newGuest(t, root, false, Limits{Nodes: nodes, Open: open})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	dir, file, before := g.mustLookup("dir"), g.mustLookup("file"), heap()
	made := 0
	for errno := unix.Errno(0); errno == 0; made++ {
		if _, errno = g.do(opMknod, dir, uint32(0o100644), uint32(0), uint64(0), fmt.Sprintf("a-name-of-usual-length-%d\x00", made)); errno != 0 && errno != unix.ENFILE {
			t.Fatal(errno)
		}
	}
	if made != nodes-1 {
		t.Errorf("%d files were made, want %d", made, nodes-1)
	}
	per := (heap() - before) / nodes
	t.Logf("a node takes %d bytes", per)
	if per > 1024 {
		t.Errorf("a node takes %d bytes", per)
	}
	dh, errno := g.open(opOpendir, dir, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := g.do(opReaddirplus, dir, dh, uint64(0), uint32(4096), make([]byte, 20)); errno != unix.ENFILE {
		t.Errorf("a list with nodes: %v", errno)
	}
	if b, errno := g.do(opReaddir, dir, dh, uint64(0), uint32(4096), make([]byte, 20)); errno != 0 || len(b) == 0 {
		t.Errorf("a list without: %d bytes, %v", len(b), errno)
	}
	count := 1
	for ; count <= open; count++ {
		if _, errno = g.open(opOpen, file, 0); errno != 0 {
			break
		}
	}
	if count != open || errno != unix.ENFILE {
		t.Errorf("%d open files, %v", count, errno)
	}
}

//go:build linux

package handover

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// memfd makes a file as a hostile guard could.
func memfd(t *testing.T, size int64, seals int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test")
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestKept: what a guard gives a room to keep, the next guard gets.
func TestKept(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid()))
	c := dial(t, path)
	if f, err := c.Kept(); f != nil || err != nil {
		t.Fatalf("before: got %v, %v, want none", f, err)
	}
	for _, text := range []string{"first", "second"} {
		f, err := NewKept()
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte(text), 0)
		if err := c.Keep(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	before := openFiles(t)
	got, err := c.Kept()
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 6)
	got.ReadAt(text, 0)
	if string(text) != "second" {
		t.Errorf("got %q, want %q", text, "second")
	}
	for _, f := range []func() error{
		func() error { return got.Truncate(1) }, func() error { return got.Truncate(KeptSize + 1) },
		func() error { _, err := got.WriteAt([]byte("x"), KeptSize); return err },
	} {
		if err := f(); err == nil {
			t.Error("the size can be changed")
		}
	}
	got.Close()
	if n := openFiles(t); n != before {
		t.Errorf("%d descriptors are open, want %d", n, before)
	}
}

// TestStore: what a guard gives a room to store is in a file of the directory, whole,
// and what isn't a file to keep changes nothing.
func TestStore(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid()))
	c := dial(t, path)
	for _, text := range []string{"first", "second"} {
		f, err := NewKept()
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte(text), KeptSize-10)
		if err := c.Store(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		got, err := os.ReadFile(filepath.Join(filepath.Dir(path), StoredFile))
		if err != nil || len(got) != KeptSize || strings.Trim(string(got), "\x00") != text {
			t.Errorf("%d bytes, %v, want %q", len(got), err, text)
		}
	}
	if err := c.Store(memfd(t, KeptSize+1, keptSeals)); err == nil || !strings.Contains(err.Error(), "bytes, want") {
		t.Errorf("another size: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(files) != 2 {
		t.Errorf("%v, %v, want the socket and the file", files, err)
	}
	if err := (&Server{}).store(int(memfd(t, KeptSize, keptSeals).Fd())); err == nil || !strings.Contains(err.Error(), "stores nothing") {
		t.Errorf("a room without a path: %v", err)
	}
}

// TestKeepRefuses: a room keeps nothing that could make it or the next guard
// fail, and goes on keeping what it has.
func TestKeepRefuses(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid()))
	good, err := NewKept()
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	c := dial(t, path)
	if err := c.Keep(good); err != nil {
		t.Fatal(err)
	}
	c.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.Truncate(KeptSize)
	readOnly, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(good.Fd())))
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var conn *net.UnixConn
	for conn == nil { // the room has seen the end of the client before
		if conn, err = net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}); err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("counters"))
		if data, _, _ := receive(conn); !strings.HasPrefix(string(data), "ok") {
			conn.Close()
			conn = nil
		}
	}
	defer conn.Close()
	before := openFiles(t)
	for _, tt := range []struct {
		name, request string
		files         []*os.File
		want          string
	}{
		{"no descriptor", "keep", nil, "got 0 descriptors, want 1"},
		{"two descriptors", "keep", []*os.File{good, good}, "got 2 descriptors, want 1"},
		{"an argument", "keep 1", []*os.File{good}, "keep takes no arguments"},
		{"one with kept", "kept", []*os.File{good}, "got 1 descriptors, want 0"},
		{"one with sockets", "sockets", []*os.File{good}, "got 1 descriptors, want 0"},
		{"a file", "keep", []*os.File{file}, "not a memfd"},
		{"a pipe", "keep", []*os.File{w}, "not a memfd"},
		{"a directory", "keep", []*os.File{dir}, "not a memfd"},
		{"not sealed", "keep", []*os.File{memfd(t, KeptSize, 0)}, "seals"},
		{"may shrink", "keep", []*os.File{memfd(t, KeptSize, unix.F_SEAL_GROW|unix.F_SEAL_SEAL)}, "seals"},
		{"may grow", "keep", []*os.File{memfd(t, KeptSize, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)}, "seals"},
		{"may be sealed", "keep", []*os.File{memfd(t, KeptSize, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)}, "seals"},
		{"can't be written", "keep", []*os.File{memfd(t, KeptSize, keptSeals|unix.F_SEAL_WRITE)}, "seals"},
		{"too large", "keep", []*os.File{memfd(t, 1<<40, keptSeals)}, "1099511627776 bytes, want 262144"},
		{"too small", "keep", []*os.File{memfd(t, 0, keptSeals)}, "0 bytes, want 262144"},
		{"read only", "keep", []*os.File{readOnly}, "can't be read and written"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var fds []int
			for _, f := range tt.files {
				fds = append(fds, int(f.Fd()))
			}
			var oob []byte
			if len(fds) > 0 {
				oob = unix.UnixRights(fds...)
			}
			if _, _, err := conn.WriteMsgUnix([]byte(tt.request), oob, nil); err != nil {
				t.Fatal(err)
			}
			data, fds, err := receive(conn)
			closeAll(fds)
			if err != nil || !strings.HasPrefix(string(data), "error ") || !strings.Contains(string(data), tt.want) {
				t.Errorf("got %q %v, want an error with %q", data, err, tt.want)
			}
			conn.Write([]byte("kept"))
			_, fds, err = receive(conn)
			if err != nil || len(fds) != 1 || inode(t, uintptr(fds[0])) != inode(t, good.Fd()) {
				t.Errorf("the room keeps something else: %v %v", fds, err)
			}
			closeAll(fds)
		})
	}
	if n := openFiles(t); n > before+8 { // the test's own
		t.Errorf("%d descriptors are open, %d before", n, before)
	}
}

// TestKeptIsChecked: the guard takes back nothing that it could fail on either.
func TestKeptIsChecked(t *testing.T) {
	for _, f := range []*os.File{memfd(t, 1<<40, keptSeals), memfd(t, KeptSize, 0)} {
		_, room, path := serveBy(t, uint32(os.Getuid()))
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		room.mu.Lock()
		room.kept = os.NewFile(uintptr(fd), keptName)
		room.mu.Unlock()
		if f, err := dial(t, path).Kept(); err == nil {
			f.Close()
			t.Error("a file was taken that can fail")
		}
	}
}

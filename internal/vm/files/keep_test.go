package files

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// opens opens a file by its name, and returns its node, its number, and whether the guest's
// kernel keeps what it has read of it.
func (g *guest) opens(name string, flags uint32) (node, fh uint64, kept, flushes bool) {
	g.t.Helper()
	node = g.mustLookup(name)
	b, errno := g.do(opOpen, node, flags, uint32(0))
	if errno != 0 {
		g.t.Fatalf("open %s: %v", name, errno)
	}
	told := binary.NativeEndian.Uint32(b[8:])
	return node, binary.NativeEndian.Uint64(b), told&fuse.FOPEN_KEEP_CACHE != 0, told&fuse.FOPEN_NOFLUSH == 0
}

// reads opens a file and reads it.
func (g *guest) reads(name string) (text string, kept bool) {
	g.t.Helper()
	node, fh, kept, _ := g.opens(name, unix.O_RDONLY)
	b, errno := g.read(node, fh, 4096)
	if errno != 0 {
		g.t.Fatalf("read %s: %v", name, errno)
	}
	return string(b), kept
}

// A guest's kernel keeps what it has read of a file while that is as it was, and never what
// it had before a change on the host, whatever times that file has.
func TestKept(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	names := []string{"same", "edited", "open", "replaced", "removed", "grown", "written"}
	for _, name := range names {
		write(name, "before")
		if err := os.Chtimes(filepath.Join(root, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	g := newGuest(t, root, false, Limits{})
	for range 2 {
		if _, kept := g.reads("same"); kept {
			t.Error("a file that was changed just now is kept")
		}
	}
	settle := func() { time.Sleep(settled + 100*time.Millisecond) }
	settle()
	for _, name := range names {
		if _, kept := g.reads(name); kept {
			t.Errorf("%s is kept before it was read in this version", name)
		}
		if _, kept := g.reads(name); !kept {
			t.Errorf("%s is not kept", name)
		}
	}

	sameTimes := func(name string) {
		t.Helper()
		write(name, "after!") // as long
		if err := os.Chtimes(filepath.Join(root, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	sameTimes("edited")
	node, fh, _, _ := g.opens("open", unix.O_RDONLY) // before the change
	sameTimes("open")
	if b, errno := g.read(node, fh, 4096); string(b) != "after!" || errno != 0 {
		t.Errorf("read %q, %v", b, errno)
	}
	write("new", "after!")
	if err := os.Rename(filepath.Join(root, "new"), filepath.Join(root, "replaced")); err != nil {
		t.Fatal(err)
	}
	write("grown", "after! and more")
	node, fh, _, flushes := g.opens("written", unix.O_RDWR)
	if !flushes {
		t.Error("closing a file that can be written is no request")
	}
	if _, errno := g.do(opWrite, node, fh, uint64(0), uint32(6), make([]byte, 20), "after!"); errno != 0 {
		t.Fatal(errno)
	}
	if text, kept := g.reads("edited"); kept || text != "after!" {
		t.Errorf("edited just now: %q, kept %v", text, kept)
	}
	settle()
	for name, want := range map[string]string{"edited": "after!", "open": "after!", "replaced": "after!", "grown": "after! and more", "written": "after!"} {
		if text, kept := g.reads(name); kept || text != want {
			t.Errorf("%s: %q, kept %v", name, text, kept)
		}
	}
	if text, kept := g.reads("same"); !kept || text != "before" {
		t.Errorf("same: %q, kept %v", text, kept)
	}
	if _, _, _, flushes := g.opens("same", unix.O_RDONLY); flushes {
		t.Error("closing a file that can't be written is a request")
	}
	if err := os.Remove(filepath.Join(root, "removed")); err != nil {
		t.Fatal(err)
	}
	if _, errno := g.lookup(rootID, "removed"); errno != unix.ENOENT {
		t.Errorf("removed: %v", errno)
	}
}

package files

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// makeShare makes a directory with a secret beside a share, and a few files in the share.
func makeShare(t testing.TB) (root, secret string) {
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

func entries(t testing.TB, dir string) (names []string) {
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

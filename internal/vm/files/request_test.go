package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRequests: lengths that lie, operations that nobody has, answers without room.
func TestRequests(t *testing.T) {
	root, _ := makeShare(t)
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
	root, _ := makeShare(t)
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

// TestAtOnce: requests that a kernel would never send beside each other neither break the
// tree nor hold each other up.
func TestAtOnce(t *testing.T) {
	root, _ := makeShare(t)
	s := newGuest(t, root, false, Limits{Nodes: 1000, Open: 100}).s
	var all sync.WaitGroup
	for worker := range uint64(8) {
		all.Go(func() {
			g := &guest{t: t, s: s, unique: worker << 32}
			r := rand.New(rand.NewPCG(worker, 0))
			name := func() string { return fmt.Sprintf("%c\x00", 'a'+r.IntN(6)) }
			node := func() uint64 { return 1 + r.Uint64N(40) }
			out := make([]byte, 8192)
			for end := time.Now().Add(time.Second); time.Now().Before(end); {
				var in []byte
				switch r.IntN(16) {
				case 0, 1:
					in = g.in(opLookup, node(), words(name()))
				case 2:
					in = g.in(opMkdir, node(), words(uint64(0o755), name()))
				case 3:
					in = g.in(opRename, node(), words(node(), name(), name()))
				case 4:
					in = g.in(opRename2, node(), words(node(), uint32(unix.RENAME_EXCHANGE), uint32(0), name(), name()))
				case 5, 6:
					in = g.in(opForget, node(), words(r.Uint64N(3)))
				case 7:
					in = g.in(opUnlink, node(), words(name()))
				case 8:
					in = g.in(opRmdir, node(), words(name()))
				case 9:
					in = g.in(opCreate, node(), words(uint32(2), uint32(0o644), uint64(0), name()))
				case 10:
					in = g.in(opRelease, node(), words(r.Uint64N(20), uint64(0), uint64(0)))
				case 11:
					in = g.in(opRead, node(), words(r.Uint64N(20), uint64(0), uint64(100), uint64(0), uint64(0)))
				case 12:
					in = g.in(opLink, node(), words(node(), name()))
				case 13:
					in = g.in(opOpendir, node(), words(uint64(0)))
				case 14:
					in = g.in(opReaddirplus, node(), words(r.Uint64N(20), uint64(0), uint64(4096), uint64(0), uint64(0)))
				case 15:
					in = g.in(opReleasedir, node(), words(r.Uint64N(20), uint64(0), uint64(0)))
				}
				if _, err := s.s.request(in, out); err != nil {
					t.Errorf("operation %d: %v", binary.NativeEndian.Uint32(in[4:]), err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		panic("requests wait for each other")
	}
}

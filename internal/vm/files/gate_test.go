package files

import (
	"slices"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// slow is a tree whose reads take until they are let go, and that notes what it is told.
type slow struct {
	fuse.RawFileSystem
	reading, letGo chan struct{}
	mu             sync.Mutex
	told           []string
}

func (s *slow) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, what)
}

func (s *slow) Lookup(_ <-chan struct{}, _ *fuse.InHeader, _ string, out *fuse.EntryOut) fuse.Status {
	out.NodeId = 2
	return fuse.OK
}

func (s *slow) Open(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.Fh = 7
	return fuse.OK
}

func (s *slow) Read(<-chan struct{}, *fuse.ReadIn, []byte) (fuse.ReadResult, fuse.Status) {
	close(s.reading)
	<-s.letGo
	s.note("read")
	return nil, fuse.OK
}

func (s *slow) Release(<-chan struct{}, *fuse.ReleaseIn) { s.note("release") }
func (s *slow) Forget(uint64, uint64)                    { s.note("forget") }

// TestUsed: what the guest gives back while a request uses it stays until that is done,
// and can't be used by another.
func TestUsed(t *testing.T) {
	tree := &slow{RawFileSystem: fuse.NewDefaultRawFileSystem(), reading: make(chan struct{}), letGo: make(chan struct{})}
	g := newGate(tree, false, &budget{maxNodes: 10, maxOpen: 10})
	var entry fuse.EntryOut
	var open fuse.OpenOut
	header := fuse.InHeader{NodeId: 2}
	if s := g.Lookup(nil, &fuse.InHeader{NodeId: rootID}, "file", &entry); !s.Ok() {
		t.Fatal(s)
	}
	if s := g.Open(nil, &fuse.OpenIn{InHeader: header}, &open); !s.Ok() {
		t.Fatal(s)
	}
	read := fuse.ReadIn{InHeader: header, Fh: 7}
	var reading sync.WaitGroup
	reading.Go(func() { g.Read(nil, &read, nil) })
	<-tree.reading
	for range 2 {
		g.Release(nil, &fuse.ReleaseIn{InHeader: header, Fh: 7})
		g.Forget(2, 1)
	}
	if _, s := g.Read(nil, &read, nil); s != ebadf {
		t.Errorf("read after the release: %v", s)
	}
	tree.mu.Lock()
	if len(tree.told) > 0 {
		t.Errorf("while it is read, the tree is told %q", tree.told)
	}
	tree.mu.Unlock()
	close(tree.letGo)
	reading.Wait()
	if want := []string{"read", "release", "forget"}; !slices.Equal(tree.told, want) {
		t.Errorf("the tree is told %q, want %q", tree.told, want)
	}
	if g.node(2) != estale || g.budget.nodes.Load() != 0 || g.budget.open.Load() != 0 {
		t.Errorf("the node is still there: %v, %d nodes, %d open", g.node(2), g.budget.nodes.Load(), g.budget.open.Load())
	}
	// A request, without a file.
	g.Lookup(nil, &fuse.InHeader{NodeId: rootID}, "file", &entry)
	tree.told = nil
	if !g.pin(2) || g.pin(3) {
		t.Error("a node that is known can't be kept, or one that isn't can")
	}
	g.Forget(2, 1)
	if len(tree.told) > 0 {
		t.Errorf("while it is used, the tree is told %q", tree.told)
	}
	g.unpin(2)
	if want := []string{"forget"}; !slices.Equal(tree.told, want) {
		t.Errorf("the tree is told %q, want %q", tree.told, want)
	}
}

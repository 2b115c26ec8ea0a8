package files

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// gate stands before go-fuse's tree of nodes. It lets through what a kernel may ask for:
// about nodes and open files that it was given and hasn't given back, with names that are
// one component of a path, and changes only where the share may be changed. An operation
// that it doesn't have is not implemented for the guest.
type gate struct {
	fuse.RawFileSystem // answers ENOSYS
	fs                 fuse.RawFileSystem
	readOnly           bool
	budget             *budget

	mu    sync.Mutex
	known map[uint64]*nodeUse
	open  map[uint64]*handle
}

// nodeUse is what the guest has of a node.
type nodeUse struct {
	lookups uint64
	uses    int // open files and requests
	// held: the guest has forgotten the node while it is used; the tree still counts one
	// lookup, until it isn't. Forgetting overtakes releasing, as it has a queue of its own.
	held bool
}

// handle is an open file or directory.
type handle struct {
	node     uint64
	dir      bool
	uses     int  // requests
	released bool // by the guest, while it is used
}

// budget is what all shares of a guest may have at once.
type budget struct {
	nodes, open       atomic.Int64
	maxNodes, maxOpen int64
}

const rootID = fuse.FUSE_ROOT_ID

func newGate(fs fuse.RawFileSystem, readOnly bool, b *budget) *gate {
	return &gate{
		RawFileSystem: fuse.NewDefaultRawFileSystem(), fs: fs, readOnly: readOnly, budget: b,
		known: map[uint64]*nodeUse{rootID: {lookups: 1}}, open: map[uint64]*handle{},
	}
}

const (
	estale = fuse.Status(unix.ESTALE)
	ebadf  = fuse.Status(unix.EBADF)
	enfile = fuse.Status(unix.ENFILE)
)

// node checks that the guest knows a node.
func (g *gate) node(id uint64) fuse.Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.known[id]; u == nil {
		return estale
	}
	return fuse.OK
}

// with runs a request about a file or a directory that the guest has open as fh of a
// node. It stays open as long.
func (g *gate) with(id, fh uint64, dir bool, call func() fuse.Status) fuse.Status {
	g.mu.Lock()
	h := g.open[fh]
	if h == nil || h.node != id || h.dir != dir || h.released {
		g.mu.Unlock()
		return ebadf
	}
	h.uses++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		h.uses--
		last := h.released && h.uses == 0
		g.mu.Unlock()
		if last {
			g.close(fh, h)
		}
	}()
	return call()
}

// withEither is with for what may be about a file or a directory.
func (g *gate) withEither(id, fh uint64, call func() fuse.Status) fuse.Status {
	g.mu.Lock()
	h := g.open[fh]
	dir := h != nil && h.dir
	g.mu.Unlock()
	return g.with(id, fh, dir, call)
}

// release closes what the guest releases, once no request uses it.
func (g *gate) release(id, fh uint64, dir bool) {
	g.mu.Lock()
	h := g.open[fh]
	if h == nil || h.node != id || h.dir != dir || h.released {
		g.mu.Unlock()
		return
	}
	h.released = true
	last := h.uses == 0
	g.mu.Unlock()
	if last {
		g.close(fh, h)
	}
}

// close removes an open file before the tree does, which may then use its number again.
func (g *gate) close(fh uint64, h *handle) {
	g.mu.Lock()
	delete(g.open, fh)
	g.mu.Unlock()
	in := &fuse.ReleaseIn{InHeader: fuse.InHeader{NodeId: h.node}, Fh: fh}
	if h.dir {
		g.fs.ReleaseDir(in)
	} else {
		g.fs.Release(nil, in)
	}
	g.budget.open.Add(-1)
	g.unpin(h.node)
}

// pin keeps a node until unpin, if the guest knows it.
func (g *gate) pin(id uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.known[id]
	if u == nil {
		return false
	}
	u.uses++
	return true
}

// change checks that a share may be changed, and the node.
func (g *gate) change(id uint64) fuse.Status {
	if g.readOnly {
		return fuse.EROFS
	}
	return g.node(id)
}

// name checks that a name is one component of a path, and a node.
func (g *gate) name(id uint64, name string) fuse.Status {
	switch {
	case name == "", name == ".", name == "..", strings.IndexByte(name, '/') >= 0, strings.IndexByte(name, 0) >= 0:
		return fuse.EINVAL
	case len(name) > unix.NAME_MAX:
		return fuse.Status(unix.ENAMETOOLONG)
	}
	return g.node(id)
}

// makes is name for a change that adds a node.
func (g *gate) makes(id uint64, name string) fuse.Status {
	if g.readOnly {
		return fuse.EROFS
	}
	return g.adds(id, name)
}

// adds is name for a request whose answer has a node.
func (g *gate) adds(id uint64, name string) fuse.Status {
	if s := g.room(); !s.Ok() {
		return s
	}
	return g.name(id, name)
}

// room checks that the guest may know one more node.
func (g *gate) room() fuse.Status {
	if g.budget.nodes.Load() >= g.budget.maxNodes {
		return enfile
	}
	return fuse.OK
}

// given counts a node that an answer has.
func (g *gate) given(id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.known[id]
	if u == nil {
		u = &nodeUse{}
		g.known[id] = u
		g.budget.nodes.Add(1)
	}
	u.lookups++
}

// entry counts the node of an answer, if it has one.
func (g *gate) entry(status fuse.Status, out *fuse.EntryOut) fuse.Status {
	if status.Ok() && out.NodeId != 0 {
		g.given(out.NodeId)
	}
	return status
}

// mayOpen takes a place for an open file; opened gives it back if there is none.
func (g *gate) mayOpen() fuse.Status {
	if g.budget.open.Add(1) > g.budget.maxOpen {
		g.budget.open.Add(-1)
		return enfile
	}
	return fuse.OK
}

// opened records an open file in the place that mayOpen took.
func (g *gate) opened(status fuse.Status, id, fh uint64, dir bool) fuse.Status {
	if !status.Ok() {
		g.budget.open.Add(-1)
		return status
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[fh] = &handle{node: id, dir: dir}
	if u := g.known[id]; u != nil {
		u.uses++
	}
	return status
}

// unpin gives a node back that was forgotten while it was used.
func (g *gate) unpin(id uint64) {
	g.mu.Lock()
	u := g.known[id]
	if u == nil {
		g.mu.Unlock()
		return
	}
	u.uses--
	forget := u.uses == 0 && u.held
	if forget {
		u.held = false
		g.drop(id, u)
	}
	g.mu.Unlock()
	if forget {
		g.fs.Forget(id, 1)
	}
}

// drop removes a node of which the guest has nothing any more.
func (g *gate) drop(id uint64, u *nodeUse) {
	if u.lookups == 0 && !u.held {
		delete(g.known, id)
		g.budget.nodes.Add(-1)
	}
}

// Forget implements [fuse.RawFileSystem]. It ignores what the guest doesn't have.
func (g *gate) Forget(id, n uint64) {
	g.mu.Lock()
	u := g.known[id]
	if u == nil || id == rootID || n == 0 || n > u.lookups {
		g.mu.Unlock()
		return
	}
	u.lookups -= n
	if u.lookups == 0 && u.uses > 0 && !u.held {
		u.held = true
		n--
	}
	g.drop(id, u)
	g.mu.Unlock()
	if n > 0 {
		g.fs.Forget(id, n)
	}
}

// Of struct fuse_direntplus (linux/fuse.h): fuse_entry_out, then fuse_dirent.
const (
	entrySize  = int(unsafe.Sizeof(fuse.EntryOut{}))
	direntSize = 24
	nameLenAt  = entrySize + 16
)

// listed counts the nodes in an answer of ReadDirPlus.
func (g *gate) listed(b []byte) {
	for len(b) >= entrySize+direntSize {
		if id := binary.NativeEndian.Uint64(b); id != 0 {
			g.given(id)
		}
		name := int(binary.NativeEndian.Uint32(b[nameLenAt:]))
		b = b[min(len(b), entrySize+(direntSize+name+7)&^7):]
	}
}

package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/vm/files/vhost"
)

// Limits are of all shares of one guest. Zero: the default.
type Limits struct {
	// Nodes is how many files the guest may know at once: 131,072. A node takes about
	// half a kilobyte here and twice that in a guest's kernel, which keeps what it has
	// looked up until it needs the memory. Beyond, a name that is looked up is ENFILE.
	Nodes int64 `json:"nodes,omitempty"`
	// Open is how many files and directories it may have open at once: 8,192.
	Open int64 `json:"open,omitempty"`
}

// MaxWrite is how many bytes a request writes or reads at most.
const MaxWrite = 256 << 10

const (
	// inFlight is how many requests of all shares are handled at once.
	inFlight = 16
	// bufferSize has room for a write or a read with its headers, and for a page.
	bufferSize = MaxWrite + 4096
	// timeout is how long the guest may rely on what it was told of a file: for a change
	// that the host makes.
	timeout = time.Second
)

// share is one directory that a guest has.
type share struct {
	root     int
	dev      uint64
	id       fs.StableAttr // of the root
	gate     *gate
	protocol *fuse.ProtocolServer
	state    atomic.Int32
	mu       sync.Mutex            // of what nodes have open
	broken   atomic.Pointer[error] // a panic in the tree of nodes
}

// Server has the shares of one guest.
type Server struct {
	budget  *budget
	buffers *vhost.Buffers
}

// NewServer returns a server without shares.
func NewServer(l Limits) *Server {
	return &Server{
		budget:  &budget{maxNodes: cmp.Or(l.Nodes, 128<<10), maxOpen: cmp.Or(l.Open, 8<<10)},
		buffers: vhost.NewBuffers(inFlight, bufferSize),
	}
}

// Share is a directory that the guest may use.
type Share struct {
	s       *share
	buffers *vhost.Buffers
}

// Open opens a directory to share it. Links in its path are followed. The caller closes
// the share.
func (srv *Server) Open(root string, readOnly bool) (*Share, error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the share %s: %w", root, err)
	}
	s := &share{root: fd}
	if err := s.prepare(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("the share %s: %w", root, err)
	}
	s.gate = newGate(s.tree(), readOnly, srv.budget)
	s.protocol = fuse.NewProtocolServer(s.gate, s.options())
	return &Share{s, srv.buffers}, nil
}

// prepare looks at the root, and at what the kernel has.
func (s *share) prepare() error {
	fd, errno := beneath(s.root, ".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if errno == unix.ENOSYS {
		return errors.New("the kernel has no openat2: Linux 5.6 or later is needed")
	}
	if errno != 0 {
		return errno
	}
	unix.Close(fd)
	st, errno := stat(s.root, "")
	if errno != 0 {
		return errno
	}
	s.dev = uint64(st.Dev_major)<<32 | uint64(st.Dev_minor)
	s.id = s.identity(&st)
	return nil
}

// tree is go-fuse's, of nodes below the root.
func (s *share) tree() fuse.RawFileSystem {
	t := timeout
	return fs.NewNodeFS(&node{share: s}, &fs.Options{
		AttrTimeout: &t, EntryTimeout: &t, NullPermissions: true, RootStableAttr: &s.id, Logger: quiet,
	})
}

// quiet takes what go-fuse says of requests: a guest could make it say anything.
var quiet = log.New(io.Discard, "", 0)

func (s *share) options() *fuse.MountOptions {
	return &fuse.MountOptions{
		MaxWrite: MaxWrite, Logger: quiet, DisableSplice: true,
		ExtraCapabilities:    fuse.CAP_READDIRPLUS_AUTO,
		DisabledCapabilities: fuse.CAP_PASSTHROUGH,
		PanicHandler: func(p any) fuse.Status {
			// A lock of the tree may be left locked.
			err := fmt.Errorf("a request: %v", p)
			s.broken.CompareAndSwap(nil, &err)
			return fuse.EIO
		},
	}
}

// Serve serves the share to the hypervisor at the other end of a connection, which it
// owns, until that closes it. An error says how the guest or the hypervisor broke the
// protocol.
func (s *Share) Serve(conn *net.UnixConn) error {
	return vhost.Serve(conn, s.buffers, s.s.request)
}

// Close closes the share and what the guest has left open. No request may be handled any
// more.
func (s *Share) Close() {
	for fh, h := range s.s.gate.open {
		s.s.gate.release(h.node, fh, h.dir)
	}
	unix.Close(s.s.root)
}

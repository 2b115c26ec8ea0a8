package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/seccomp"
)

// Config is what [Main] reads.
type Config struct {
	Shares []Mount `json:"shares"`
	Limits Limits  `json:"limits"`
}

// Mount is one share of a guest.
type Mount struct {
	// Root is the directory.
	Root string `json:"root"`
	// ReadOnly refuses changes. The directory's mount has to be read-only, too.
	ReadOnly bool `json:"read_only,omitempty"`
	// Socket is a descriptor that the process inherits: one end of a pair of stream
	// sockets, of which QEMU has the other for its vhost-user-fs-device.
	Socket int `json:"socket"`
}

// maxShares is how many shares a guest has at most: as many devices.
const maxShares = 16

// Main is the file server of one guest: it reads a [Config] as JSON, gives up what it
// doesn't need, and serves until the hypervisor closes a socket, or breaks the protocol.
// It returns the exit status, and writes why it isn't 0.
func Main(in io.Reader, errs io.Writer) int {
	// go-fuse says through it what a guest did wrong, as often as the guest likes.
	log.SetOutput(io.Discard)
	if err := serve(in); err != nil {
		fmt.Fprintln(errs, "workshop-vm: file server:", err)
		return 1
	}
	return 0
}

func serve(in io.Reader) error {
	var c Config
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if len(c.Shares) == 0 || len(c.Shares) > maxShares {
		return fmt.Errorf("there are %d shares, want 1 to %d", len(c.Shares), maxShares)
	}
	srv := NewServer(c.Limits)
	var shares []*Share
	var sockets []*net.UnixConn
	for _, m := range c.Shares {
		s, err := srv.Open(m.Root, m.ReadOnly)
		if err != nil {
			return err
		}
		conn, err := inherited(m.Socket)
		if err != nil {
			return fmt.Errorf("the socket of %s: %w", m.Root, err)
		}
		shares, sockets = append(shares, s), append(sockets, conn)
	}
	if err := confine(); err != nil {
		return err
	}
	ended := make(chan error)
	for i, s := range shares {
		go func() {
			err := s.Serve(sockets[i])
			if err != nil {
				err = fmt.Errorf("the share %s: %w", c.Shares[i].Root, err)
			}
			ended <- err
		}()
	}
	return <-ended
}

// inherited returns the socket of a descriptor.
func inherited(fd int) (*net.UnixConn, error) {
	if fd < 3 {
		return nil, fmt.Errorf("descriptor %d is not one for it", fd)
	}
	f := os.NewFile(uintptr(fd), "vhost-user")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("it is not a unix socket")
	}
	return conn, nil
}

// gcPercent lets the heap grow by a quarter between collections: most of it is the tree
// of nodes.
const gcPercent = 25

// calls are what serving needs. There are none that make a socket or connect one, execute
// a program, or look at another process; of openat(2)'s kind only openat2(2), which is
// given how to resolve a path.
var calls = []uintptr{
	unix.SYS_RECVMSG, unix.SYS_OPENAT2, unix.SYS_STATX, unix.SYS_FSTAT, unix.SYS_FSTATFS, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_LSEEK,
	unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_FGETXATTR, unix.SYS_FSETXATTR, unix.SYS_FLISTXATTR, unix.SYS_FREMOVEXATTR,
}

// confine gives up, for good, what the process doesn't need to serve.
func confine() error {
	debug.SetGCPercent(gcPercent)
	unix.Umask(0) // the guest's kernel has applied the umask of its caller
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid tracing: %w", err)
	}
	return seccomp.Allow(calls...)
}

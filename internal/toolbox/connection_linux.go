package toolbox

import (
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// connection is a session's standard input and output: two pipes of an engine,
// or one socket that is both.
type connection struct {
	in, out *os.File
	once    sync.Once
	ended   chan struct{} // closed at the end of the input, and by Close
}

// newConnection takes the descriptors over and leaves /dev/null in their
// place, so that nothing else of the process writes into the connection.
func newConnection(stdin, stdout *os.File) (*connection, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	in, err := takeOver(stdin, null)
	if err != nil {
		return nil, err
	}
	out, err := takeOver(stdout, null)
	if err != nil {
		return nil, err
	}
	return &connection{in: in, out: out, ended: make(chan struct{})}, nil
}

func takeOver(f, null *os.File) (*os.File, error) {
	fd := int(f.Fd())
	taken, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
		return nil, err
	}
	// Only then a Read that waits ends at Close.
	if err := unix.SetNonblock(taken, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(taken), f.Name()), nil
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *connection) Write(b []byte) (int, error) { return c.out.Write(b) }

// SyscallConn is Write's, for package wire.
func (c *connection) SyscallConn() (syscall.RawConn, error) { return c.out.SyscallConn() }

func (c *connection) Close() error {
	c.end()
	err := c.out.Close()
	if e := c.in.Close(); err == nil {
		err = e
	}
	return err
}

func (c *connection) end() { c.once.Do(func() { close(c.ended) }) }

var _ io.ReadWriteCloser = (*connection)(nil)

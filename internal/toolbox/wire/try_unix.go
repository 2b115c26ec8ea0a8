//go:build unix

package wire

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryWriter makes a function that writes what the kernel takes at once, for
// sockets and pipes (as os.File); nil for others, and for descriptors in
// blocking mode, where every write may wait.
func tryWriter(w io.Writer) func([]byte) (int, error) {
	sc, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	flags := 0
	if err := raw.Control(func(fd uintptr) { flags, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) }); err != nil || flags&unix.O_NONBLOCK == 0 {
		return nil
	}
	t := &tryWrite{raw: raw}
	t.do = t.write
	return t.try
}

// tryWrite is one writer's; it is kept to allocate nothing.
type tryWrite struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool
	b   []byte
	n   int
	err error
}

func (t *tryWrite) try(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	t.b, t.n, t.err = b, 0, nil
	if err := t.raw.Write(t.do); err != nil {
		t.err = err
	}
	t.b = nil
	return t.n, t.err
}

func (t *tryWrite) write(fd uintptr) bool {
	for {
		n, err := unix.Write(int(fd), t.b)
		switch err {
		case nil:
			t.n = n
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			t.err = err
		}
		return true // never waits
	}
}

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// passing is the data of a message with a connection.
const passing = "c"

// Pass passes a connection to the guard that holds the other end of sock, a
// SOCK_SEQPACKET unix socket: the guard serves it like one that it has accepted.
// The caller's conn stays open.
func Pass(sock *net.UnixConn, conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) {
		_, _, err = sock.WriteMsgUnix([]byte(passing), unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(cerr, err)
}

// Inherited returns the socket inherited from a parent process as descriptor fd,
// for [Server.Take].
func Inherited(fd int) (*net.UnixConn, error) {
	if typ, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || typ != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("control: descriptor %d is not a SOCK_SEQPACKET socket", fd)
	}
	f := os.NewFile(uintptr(fd), "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("control: descriptor %d: %w", fd, err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("control: descriptor %d is not a unix socket", fd)
	}
	return u, nil
}

// Take serves the connections passed through sock, one in each message, until ctx
// or the peer ends. The peer is trusted without a check of credentials, as nobody
// else can have the other end. Any other message is discarded with its descriptors.
func (s *Server) Take(ctx context.Context, sock *net.UnixConn) {
	defer sock.Close()
	stop := context.AfterFunc(ctx, func() { sock.Close() })
	defer stop()
	for {
		c, err := take(sock)
		switch {
		case errors.Is(err, errNoConnection):
		case err != nil:
			return
		default:
			s.serve(ctx, c)
		}
	}
}

// errNoConnection means that a message had no connection.
var errNoConnection = errors.New("control: the message carries no connection")

// take reads one message. Errors other than [errNoConnection] are those of sock.
func take(sock *net.UnixConn) (net.Conn, error) {
	data, oob := make([]byte, len(passing)+1), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, flags, _, err := sock.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, err
	}
	if n == 0 && oobn == 0 {
		return nil, net.ErrClosed // an empty message looks the same: nobody sends one
	}
	fds := rights(oob[:oobn])
	if string(data[:n]) != passing || len(fds) != 1 || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, errNoConnection
	}
	f := os.NewFile(uintptr(fds[0]), "control")
	defer f.Close()
	if typ, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_TYPE); err != nil || typ != unix.SOCK_STREAM {
		return nil, errNoConnection
	}
	c, err := net.FileConn(f) // a listener has no peer and ends at its first read
	if err != nil {
		return nil, errNoConnection
	}
	return c, nil
}

// rights returns the descriptors of a message (SCM_RIGHTS).
func rights(oob []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

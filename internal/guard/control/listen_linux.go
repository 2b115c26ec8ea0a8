package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/peercred"
)

// Listen opens the control socket at path, mode 0600. It removes a stale socket of
// the previous guard.
func Listen(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("control: %s exists and is not a socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// Accept serves callers until ctx ends. The directory and the socket's mode keep
// others away; in addition the peer must be the guard's own user or root.
func (s *Server) Accept(ctx context.Context, l *net.UnixListener) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond) // out of descriptors, most likely
		case !trusted(c):
			c.Close()
		default:
			s.serve(ctx, c)
		}
	}
}

// trusted reports whether the peer is the guard's own user or root (SO_PEERCRED,
// unix(7)).
func trusted(c *net.UnixConn) bool {
	cred, err := peercred.Of(c)
	return err == nil && (cred.Uid == 0 || cred.Uid == uint32(os.Geteuid()))
}

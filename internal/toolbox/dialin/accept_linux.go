package dialin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/peercred"
)

// Accept offers a socket in the worker's directory, as the host sees it, and
// waits for the worker's PID 1 to connect, whose number on this machine is pid.
// It waits at most [Wait]. Any error means that sessions of this worker must
// come another way; nothing stays in the directory.
func Accept(ctx context.Context, dir string, pid int) (net.Conn, error) {
	if pid <= 0 {
		return nil, errors.New("the worker's process is unknown here")
	}
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	removeOld(d)
	name := rand.Text()
	l, err := listen(d, name+unready)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	at := int(d.Fd())
	if err := unix.Renameat(at, name+unready, at, name+Suffix); err != nil {
		_ = unix.Unlinkat(at, name+unready, 0)
		return nil, err
	}
	defer func() { _ = unix.Unlinkat(at, name+Suffix, 0) }()

	deadline := time.Now().Add(Wait)
	if err := l.SetDeadline(deadline); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })()
	refused := 0
	for {
		c, err := l.AcceptUnix()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded) && refused > 0:
			return nil, fmt.Errorf("the worker did not connect within %v; %d connections of other processes were refused", Wait, refused)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("the worker did not connect within %v", Wait)
		default:
			return nil, err
		}
		if is, err := peer(c); err == nil && is == pid {
			return c, nil
		}
		// Whoever sees the directory in the worker can connect, and may try.
		c.Close()
		refused++
	}
}

// listen makes a socket in an open directory, whose own path may be longer than
// an address of a socket can be (108 bytes). Everybody may connect: the worker
// need not have our uid.
func listen(dir *os.File, name string) (*net.UnixListener, error) {
	at := int(dir.Fd())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(at) + "/" + name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it gets another name
	if err := unix.Fchmodat(at, name, 0o666, 0); err != nil {
		l.Close()
		_ = unix.Unlinkat(at, name, 0)
		return nil, err
	}
	return l, nil
}

// Listen offers a socket of a name in the worker's directory, as the host sees it, that
// every process of the worker may connect to. It takes the place of an older one.
func Listen(dir, name string) (net.Listener, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	hidden := rand.Text() + unready
	l, err := listen(d, hidden)
	if err != nil {
		return nil, err
	}
	if err := unix.Renameat(int(d.Fd()), hidden, int(d.Fd()), name); err != nil {
		l.Close()
		_ = unix.Unlinkat(int(d.Fd()), hidden, 0)
		return nil, err
	}
	return l, nil
}

// peer tells which process has connected; 0 is one that this process namespace
// doesn't know.
func peer(c *net.UnixConn) (pid int, err error) {
	cred, err := peercred.Of(c)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// removeOld removes what hosts left that were killed: nobody waits that long.
func removeOld(dir *os.File) {
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), Suffix) && !strings.HasSuffix(e.Name(), unready) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 10*Wait {
			_ = unix.Unlinkat(int(dir.Fd()), e.Name(), 0)
		}
	}
}

package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/peercred"
)

// Bounds of the cost of clients.
const (
	maxConns  = 1024 // clients may wait for each service
	smallLine = 64 << 10
	maxLarge  = 4 // requests above smallLine at a time
	lineTime  = 10 * time.Second
	idleTime  = time.Minute // between two requests of a connection
	sendTime  = 10 * time.Second
)

// open opens the socket in an open directory, whose path may be longer than the
// address of a socket (108 bytes). It removes the socket of the previous supervisor,
// which isn't alive, as this one holds the lock.
func open(dir *os.File) (*net.UnixListener, error) {
	defer runtime.KeepAlive(dir) // a number doesn't keep it open
	at := int(dir.Fd())
	if err := unix.Unlinkat(at, api.SocketName, 0); err != nil && err != unix.ENOENT {
		return nil, fmt.Errorf("%s can't be removed: %w", api.SocketName, err)
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(at) + "/" + api.SocketName, Net: "unix"})
	unix.Umask(old)
	return l, err
}

// accept serves clients until the socket is closed.
func (s *Supervisor) accept(l *net.UnixListener) {
	places := make(chan struct{}, maxConns)
	large := make(chan struct{}, maxLarge)
	for {
		c, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(50 * time.Millisecond) // out of descriptors, most likely
			continue
		case !trusted(c):
			c.Close()
			continue
		}
		select {
		case places <- struct{}{}:
			go func() {
				defer func() { <-places }()
				defer c.Close()
				s.serve(c, large)
			}()
		default:
			refuse(c, failure(api.CodeFailed, "too many clients: at most %d are served", maxConns))
			c.Close()
		}
	}
}

// trusted reports whether the peer is our own user or root, and not one of our
// containers: those have a PID in our pid namespace, a client outside has none
// (SO_PEERCRED, unix(7)). The directory's mode already keeps others away.
func trusted(c *net.UnixConn) bool {
	cred, err := peercred.Of(c)
	return err == nil && (cred.Uid == 0 || cred.Uid == uint32(os.Geteuid())) && (cred.Pid == 0 || os.Getpid() != 1)
}

// serve carries out the requests of one client in order.
func (s *Supervisor) serve(c *net.UnixConn, large chan struct{}) {
	r := bufio.NewReaderSize(c, 4<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(idleTime))
		if _, err := r.Peek(1); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(lineTime))
		line, err := readLine(r, large)
		if err != nil {
			if errors.Is(err, errTooLong) {
				refuse(c, failure(api.CodeInvalid, "%v", err))
			}
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		request, err := decode(line)
		line = nil
		if err != nil {
			refuse(c, failure(api.CodeInvalid, "%v", err))
			return
		}
		ctx, done := attend(c, r)
		s.busy.Add(1)
		a, f := s.handle(ctx, request)
		done()
		err = send(c, &a, f)
		s.busy.Add(-1)
		s.rest.Reset(restTime)
		if f != nil {
			f.Close()
		}
		if err != nil {
			return
		}
	}
}

// attend returns a context that ends when the client disconnects. done must be called
// before anything else is read.
func attend(c *net.UnixConn, r *bufio.Reader) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := r.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
	}()
	return ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-over
		cancel()
	}
}

var errTooLong = fmt.Errorf("the request is longer than %d bytes", api.MaxRequest)

// readLine reads one line. It bounds the number of large ones read concurrently.
func readLine(r *bufio.Reader, large chan struct{}) ([]byte, error) {
	var out []byte
	big := false
	defer func() {
		if big {
			<-large
		}
	}()
	for {
		part, err := r.ReadSlice('\n')
		if len(out)+len(part) > smallLine && !big {
			select {
			case large <- struct{}{}:
			case <-time.After(lineTime):
				return nil, os.ErrDeadlineExceeded
			}
			big = true
		}
		if len(out)+len(part) > api.MaxRequest {
			return nil, errTooLong
		}
		out = append(out, part...)
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			return out, err
		}
	}
}

func refuse(c *net.UnixConn, e *api.Error) { _ = send(c, &api.Answer{Error: e}, nil) }

// errInFlight is the message to a client if the kernel refuses to pass a descriptor.
var errInFlight = fmt.Sprintf("no descriptor can be passed on (%v): programs of uid %d, usually a worker's, have too many in flight in sockets; end them with `workshop down`", unix.ETOOMANYREFS, os.Getuid())

// send writes a response; the descriptor is sent with its first byte.
func send(c *net.UnixConn, a *api.Answer, f *os.File) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_ = c.SetWriteDeadline(time.Now().Add(sendTime))
	if f != nil {
		n, _, err := c.WriteMsgUnix(b, unix.UnixRights(int(f.Fd())), nil)
		if errors.Is(err, unix.ETOOMANYREFS) {
			return send(c, &api.Answer{Error: &api.Error{Code: api.CodeFailed, Message: errInFlight}}, nil)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if len(b) > 0 {
		_, err = c.Write(b)
	}
	return err
}

package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/peercred"
)

// Handler is the room behind a [Server]. Its methods are called one at a time.
type Handler interface {
	// Sockets returns the descriptors in the order of [Sockets], which the handler
	// still owns.
	Sockets() (Kind, []int, error)
	// Dial returns a new descriptor, which the server closes.
	Dial(port uint16) (int, error)
	// Listen returns the listener of an endpoint's port, which the handler still owns.
	Listen(port uint16) (int, error)
	// Redirect replaces the open or redirected ports by these.
	Redirect(ports []firewall.PortRange) (Opened, error)
	Counters() (Counters, error)
}

// Server is the room's side: it serves one guard at a time.
type Server struct {
	Handler Handler
	// UID is the only user that is served.
	UID uint32
	// Stored is the path of the file for [Client.Store]; empty: that is refused.
	Stored string
	// Log, if not nil, gets a line about every guard that connects or is refused.
	Log func(line string)

	mu   sync.Mutex
	busy bool
	kept *os.File // the guard's, never read here; nil: none
}

// Listen listens at path, after removing the socket of a previous room. Everybody may
// connect: access is restricted by the directory, and Serve checks the peer's uid.
func Listen(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s exists and is not a socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	old := unix.Umask(0o111)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	unix.Umask(old)
	return l, err
}

// Serve accepts guards until the listener is closed.
func (s *Server) Serve(l *net.UnixListener) error {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			s.log("accept: " + err.Error())
			time.Sleep(50 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		if err := s.admit(conn); err != nil {
			s.log("refused a connection: " + err.Error())
			go refuse(conn, err)
			continue
		}
		go s.serve(conn)
	}
}

// admit checks the peer and takes the only place.
func (s *Server) admit(conn *net.UnixConn) error {
	cred, err := peercred.Of(conn)
	if err != nil {
		return err
	}
	if cred.Uid != s.UID {
		return fmt.Errorf("the guard must have uid %d, not %d", s.UID, cred.Uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return errors.New("another guard is connected")
	}
	s.busy = true
	return nil
}

// refuse sends the reason and waits for the peer to read it: closing a unix socket with
// an unread request would discard the response.
func refuse(conn *net.UnixConn, why error) {
	defer conn.Close()
	send(conn, []byte("error "+why.Error()))
	conn.CloseWrite()
	conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		_, fds, err := receive(conn)
		closeAll(fds)
		if err != nil {
			return
		}
	}
}

func (s *Server) serve(conn *net.UnixConn) {
	s.log("the guard has connected")
	for {
		data, fds, err := receive(conn)
		if err != nil {
			break
		}
		r, err := parseRequest(data)
		if err == nil && len(fds) != r.verb.files() {
			err = fmt.Errorf("%s: got %d descriptors, want %d", r.verb, len(fds), r.verb.files())
		}
		if err == nil && r.verb == verbKeep {
			if err = checkKept(fds[0]); err == nil {
				s.keep(os.NewFile(uintptr(fds[0]), keptName))
				fds = nil
			}
		}
		if err == nil && r.verb == verbStore {
			err = s.store(fds[0])
		}
		closeAll(fds)
		if err == nil {
			err = s.answer(conn, r)
		}
		if err != nil {
			if send(conn, []byte("error "+err.Error())) != nil {
				break
			}
		}
	}
	conn.Close()
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
	s.log("the guard has disconnected")
}

// keep replaces the kept file.
func (s *Server) keep(f *os.File) {
	if s.kept != nil {
		s.kept.Close()
	}
	s.kept = f
}

// store replaces the stored file by the content of a file like the kept one.
func (s *Server) store(fd int) error {
	if s.Stored == "" {
		return errors.New("this room stores nothing")
	}
	if err := checkKept(fd); err != nil {
		return err
	}
	b := make([]byte, KeptSize)
	for n := 0; n < len(b); {
		m, err := unix.Pread(fd, b[n:], int64(n))
		if err != nil {
			return fmt.Errorf("read what is to be stored: %w", err)
		}
		n += m // the size is sealed: there is no end before
	}
	return atomicfile.Write(s.Stored, b, 0o444)
}

// answer carries out one request. A returned error is sent to the guard.
func (s *Server) answer(conn *net.UnixConn, r request) error {
	switch r.verb {
	case verbSockets:
		kind, fds, err := s.Handler.Sockets()
		if err != nil {
			return err
		}
		return send(conn, []byte(strings.TrimSuffix("ok "+string(kind), " ")), fds...)
	case verbDial:
		fd, err := s.Handler.Dial(r.port)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return send(conn, []byte("ok"), fd)
	case verbListen:
		fd, err := s.Handler.Listen(r.port)
		if err != nil {
			return err
		}
		return send(conn, []byte("ok"), fd)
	case verbRedirect:
		o, err := s.Handler.Redirect(r.ports)
		if err != nil {
			return err
		}
		return send(conn, []byte(o.encode()), o.FDs...)
	case verbCounters:
		c, err := s.Handler.Counters()
		if err != nil {
			return err
		}
		return send(conn, []byte(c.encode()))
	case verbKeep, verbStore:
		return send(conn, []byte("ok"))
	case verbKept:
		if s.kept == nil {
			return send(conn, []byte("ok none"))
		}
		return send(conn, []byte("ok"), int(s.kept.Fd()))
	}
	return errors.New("unknown request")
}

func send(conn *net.UnixConn, data []byte, fds ...int) error {
	if len(data) > maxPacket {
		data = data[:maxPacket]
	}
	conn.SetWriteDeadline(time.Now().Add(requestTimeout))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := conn.WriteMsgUnix(data, oob, nil)
	return err
}

func (s *Server) log(line string) {
	if s.Log != nil {
		s.Log(line)
	}
}

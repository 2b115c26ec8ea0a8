package control

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"
)

var errFull = errors.New("too many connections to the guard's control; try again")

// lateTimeout bounds the request of a connection that has no place.
const lateTimeout = 2 * time.Second

// late serves a connection that has no place: others must not keep the broker away.
func (s *Server) late(c net.Conn) {
	select {
	case s.broker <- struct{}{}:
	default:
		_ = send(c, nil, errFull)
		return
	}
	defer func() { <-s.broker }()
	_ = c.SetReadDeadline(time.Now().Add(lateTimeout))
	r := bufio.NewReader(c)
	line, err := r.ReadSlice('\n')
	if err != nil {
		_ = send(c, nil, errFull)
		return
	}
	req, err := decode(line)
	if err != nil || req.Op != OpAttach {
		_ = send(c, nil, errFull)
		return
	}
	if err := s.mayAttach(r, req); err != nil {
		_ = send(c, nil, err)
		return
	}
	s.speak(c)
}

// attach makes a connection with a place that of the broker, unless there is one, and
// reports whether there may be another request. leave frees its place.
func (s *Server) attach(c net.Conn, r *bufio.Reader, req Request, leave func()) bool {
	if err := s.mayAttach(r, req); err != nil {
		return send(c, nil, err) == nil
	}
	select {
	case s.broker <- struct{}{}:
	default:
		return send(c, nil, errors.New("another broker is attached to the guard; there is one at a time")) == nil
	}
	defer func() { <-s.broker }()
	leave()
	s.speak(c)
	return false
}

func (s *Server) mayAttach(r *bufio.Reader, req Request) error {
	switch {
	case s.Attach == nil:
		return errors.New("no broker can attach to this guard")
	case req.Version != AttachVersion:
		return fmt.Errorf("attach has version %d, this guard has %d: use the program that started the guard", req.Version, AttachVersion)
	case r.Buffered() > 0:
		return errors.New("attach: more was sent before the response")
	}
	return nil
}

// speak answers OpAttach and speaks with the broker until the connection ends.
func (s *Server) speak(c net.Conn) {
	if send(c, Attached{AttachVersion}, nil) == nil {
		_ = c.SetDeadline(time.Time{})
		s.Attach(c)
	}
}

package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Limits of the server.
const (
	// MaxConns bounds concurrent callers. Further ones take the place of the one that
	// has sent nothing for the longest time after a response, at least idleEnough;
	// without one they are refused.
	MaxConns    = 8
	idleEnough  = time.Second
	idleTimeout = 2 * time.Minute  // between two requests
	lineTimeout = 30 * time.Second // for one request, from its first byte to its last
	sendTimeout = 30 * time.Second
)

// Server is the guard's side.
type Server struct {
	// Do carries out a request and returns the result to send. It is called by
	// several goroutines.
	Do func(context.Context, Request) (any, error)
	// Panicked, if not nil, is called when serving a connection panicked, which
	// ends the connection.
	Panicked func()
	// Attach, if not nil, speaks with the broker after OpAttach, until the connection ends.
	Attach func(net.Conn)

	broker chan struct{} // held by the connection of the broker, or one that may become it
	conns  chan struct{}
	large  chan struct{} // held by the one request larger than smallLine
	mu     sync.Mutex
	idle   map[net.Conn]time.Time // since when those that had a response send nothing
}

// NewServer returns a server that isn't listening yet.
func NewServer(do func(context.Context, Request) (any, error)) *Server {
	return &Server{Do: do, broker: make(chan struct{}, 1), conns: make(chan struct{}, MaxConns), large: make(chan struct{}, 1), idle: map[net.Conn]time.Time{}}
}

// serve is Serve on a new goroutine.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	panics.Go(func() { s.Serve(ctx, c) }, func() {
		if s.Panicked != nil {
			s.Panicked()
		}
	})
}

// Serve answers the requests of one connection until EOF, and closes it. An invalid
// request gets an error, and the next is read.
func (s *Server) Serve(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if !s.enter() {
		s.late(c)
		return
	}
	leave := sync.OnceFunc(func() { <-s.conns })
	defer leave()
	for r := bufio.NewReader(c); s.one(ctx, c, r, leave); {
		s.mu.Lock()
		s.idle[c] = time.Now()
		s.mu.Unlock()
	}
	s.wakes(c)
}

// enter takes a place, that of an idle connection if there is no other, and reports
// whether it has one.
func (s *Server) enter() bool {
	select {
	case s.conns <- struct{}{}:
		return true
	default:
	}
	if !s.endIdle() {
		return false
	}
	select {
	case s.conns <- struct{}{}:
		return true
	case <-time.After(idleEnough): // another caller has it
		return false
	}
}

// endIdle closes the connection that is idle for the longest time, and reports
// whether there is one.
func (s *Server) endIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest net.Conn
	for c, since := range s.idle {
		if oldest == nil || since.Before(s.idle[oldest]) {
			oldest = c
		}
	}
	if oldest == nil || time.Since(s.idle[oldest]) < idleEnough {
		return false
	}
	delete(s.idle, oldest)
	return oldest.Close() == nil
}

// wakes ends the idle time of a connection.
func (s *Server) wakes(c net.Conn) {
	s.mu.Lock()
	delete(s.idle, c)
	s.mu.Unlock()
}

// one answers one request and reports whether there may be another. leave frees the
// connection's place.
func (s *Server) one(ctx context.Context, c net.Conn, r *bufio.Reader, leave func()) bool {
	_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
	_, err := r.Peek(1)
	s.wakes(c)
	if err != nil {
		return false
	}
	_ = c.SetReadDeadline(time.Now().Add(lineTimeout))
	free := func() {}
	defer func() { free() }()
	line, err := readLine(r, func() {
		s.large <- struct{}{}
		free = func() { <-s.large }
	})
	if err != nil && !errors.Is(err, errTooLong) {
		return false // an incomplete line isn't a request
	}
	var req Request
	if err == nil {
		req, err = decode(line)
	}
	line = nil // the memory is needed for the parsed policy
	if err == nil && req.Op == OpAttach {
		return s.attach(c, r, req, leave)
	}
	var result any
	if err == nil {
		result, err = s.Do(ctx, req)
	}
	return send(c, result, err) == nil
}

// send writes a response.
func send(c net.Conn, result any, err error) error {
	var a Answer
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a = Answer{Error: clip.Bytes(err.Error(), maxError)}
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_ = c.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err = c.Write(append(b, '\n'))
	return err
}

package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Process is a server that runs.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	// Stderr may be nil. It is read for the reason of an end alone.
	Stderr io.Reader
	// End ends it; it may be called more than once.
	End func()
	// Wait waits for its end and says how it was.
	Wait func() error
}

// Config is what a Server works with.
type Config struct {
	Name   string // of the server, for messages
	Client string // who calls, as MCP's clientInfo says it
	// Start starts it; the context ends with the Server.
	Start func(ctx context.Context) (*Process, error)
	// Changed is called when the list of tools is another; may be nil.
	Changed func()
	// Warn is told what isn't offered and why; may be nil.
	Warn func(text string)
}

// Server is one MCP server, running or not. It is safe for use by several
// goroutines.
type Server struct {
	c    Config
	life context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	run      *run      // nil: not running
	starting *starting // nil: not starting
	failed   error     // why it didn't start, and when
	failedAt time.Time
	tools    []Tool // as last listed, also while it doesn't run
}

// starting is a start that several may wait for.
type starting struct {
	done  chan struct{}
	begun time.Time
	run   *run
	err   error
}

// New makes a Server; nothing is started yet.
func New(c Config) *Server {
	s := &Server{c: c}
	s.life, s.stop = context.WithCancel(context.Background())
	return s
}

// ErrClosed is what a closed Server answers.
var ErrClosed = errors.New("the session of the MCP server is closed")

// Known are the tools that were last listed, without a start.
func (s *Server) Known() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Starting is how long the server has been starting; 0 where it isn't.
func (s *Server) Starting() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starting == nil {
		return 0
	}
	return time.Since(s.starting.begun)
}

// List returns the tools of the server, and starts it if need be. When ctx ends,
// the start goes on, and Changed tells when the tools are there.
func (s *Server) List(ctx context.Context) ([]Tool, error) {
	if _, err := s.get(ctx); err != nil {
		return nil, err
	}
	return s.Known(), nil
}

// get returns the running server, or starts it.
func (s *Server) get(ctx context.Context) (*run, error) {
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if s.run != nil && !s.run.ended() {
		defer s.mu.Unlock()
		return s.run, nil
	}
	s.run = nil
	if s.failed != nil && time.Since(s.failedAt) < failedFor {
		defer s.mu.Unlock()
		return nil, s.failed
	}
	st := s.starting
	if st == nil {
		st = &starting{done: make(chan struct{}), begun: time.Now()}
		s.starting = st
		go s.start(st)
	}
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.run, st.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the MCP server %s hasn't answered yet: %w", s.c.Name, context.Cause(ctx))
	}
}

func (s *Server) start(st *starting) {
	ctx, cancel := context.WithTimeoutCause(s.life, StartTime, fmt.Errorf("no answer in %v", StartTime))
	defer cancel()
	r, tools, err := startRun(ctx, s)
	if err != nil {
		err = fmt.Errorf("the MCP server %s doesn't start: %w", s.c.Name, err)
	}
	s.mu.Lock()
	if s.life.Err() != nil && r != nil { // closed in the meantime
		go r.close()
		r, err = nil, ErrClosed
	}
	s.run, s.starting, s.failed, s.failedAt = r, nil, err, time.Now()
	changed := err == nil && s.set(tools)
	st.run, st.err = r, err
	s.mu.Unlock()
	close(st.done)
	s.tellChanged(changed)
}

// set takes a list over and reports whether it is another. s.mu is held.
func (s *Server) set(tools []Tool) bool {
	same := slices.EqualFunc(s.tools, tools, equal)
	s.tools = tools
	return !same
}

func equal(a, b Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && slices.Equal(a.InputSchema, b.InputSchema) && slices.Equal(a.OutputSchema, b.OutputSchema) &&
		a.ReadOnly == b.ReadOnly && a.Destructive == b.Destructive && a.Idempotent == b.Idempotent && a.OpenWorld == b.OpenWorld
}

func (s *Server) tellChanged(changed bool) {
	if changed && s.c.Changed != nil && s.life.Err() == nil {
		s.c.Changed()
	}
}

func (s *Server) warn(format string, a ...any) {
	if s.c.Warn != nil {
		s.c.Warn(fmt.Sprintf("the MCP server %s: ", s.c.Name) + fmt.Sprintf(format, a...))
	}
}

// Close ends the server.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	r := s.run
	s.run = nil
	s.mu.Unlock()
	if r != nil {
		r.close()
	}
}

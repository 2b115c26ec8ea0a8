package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
)

// Options of one server.
type Options struct {
	In  io.ReadCloser
	Out io.WriteCloser
	// Version of the program, for the client.
	Version string
	// Instructions tell the client's model what it may do and reach. They are part
	// of the first answer, before there is a Host. asks: the client can ask a person.
	// Nil: none.
	Instructions func(asks bool) string
	// Structured lists the output schemas of our tools, and sends their results as
	// structuredContent too. Without it a result is text alone: what a client does
	// with both differs, and the model gets the JSON in place of the text, or both.
	Structured bool
	// Open makes the Host, once, when the client has said who it is: asker puts
	// questions to the person at the client, nil where it can't; client is its name
	// and version; changed must be called when the Host's tools have changed. An
	// error is the answer to everything that the client asks then, and Run's.
	Open func(ctx context.Context, asker approval.Asker, client string, changed func()) (*session.Host, error)
	// Warn gets what a person should know; nil: nobody.
	Warn func(text string)
	// Hint gets, once, how calls that were refused can pass; nil: nobody.
	Hint func(text string)
	// Unreachable gets, at each call, why there is no way to its worker; nil: nobody.
	// The model isn't told that.
	Unreachable func(*session.UnreachableError)
}

// host is what is used of a session.Host.
type host interface {
	Tools(context.Context) ([]session.Tool, error)
	Call(ctx context.Context, name string, args json.RawMessage, o session.Options) (*session.Result, error)
	Resources() []session.Resource
	Close() error
}

// Run serves one client, and returns when it has gone or ctx has ended. Then
// the Host is closed. The end of the input is no error.
func Run(ctx context.Context, o Options) error {
	return run(ctx, o, func(ctx context.Context, asker approval.Asker, client string, changed func()) (host, error) {
		h, err := o.Open(ctx, asker, client, changed)
		if err != nil {
			return nil, err // not h: a nil *Host is no nil host
		}
		return h, nil
	})
}

func run(ctx context.Context, o Options, open opener) error {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Hint == nil {
		o.Hint = func(string) {}
	}
	if o.Unreachable == nil {
		o.Unreachable = func(*session.UnreachableError) {}
	}
	hosting, stop := context.WithCancel(ctx)
	defer stop()
	c := newConn(o.In, o.Out)
	s := &server{open: open, ctx: hosting, warn: o.Warn, hint: o.Hint, unreachable: o.Unreachable, instructions: o.Instructions, conn: c, structured: o.Structured, opened: make(chan struct{}), news: make(chan struct{}, 1), hinted: map[string]bool{}}
	protocol := mcp.NewServer(&mcp.Implementation{Name: "workshop", Title: "workshop", Version: o.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{},
		},
		SupportedProtocolVersions: []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"},
	})
	protocol.AddReceivingMiddleware(s.middleware)
	ss, err := protocol.Connect(context.WithoutCancel(ctx), c, nil)
	if err != nil {
		return err
	}
	idle := make(chan struct{})
	go func() { _ = ss.Wait(); close(idle) }()
	go s.announce()

	select {
	case <-c.ended:
	case <-ctx.Done():
	}
	stop()
	closed := make(chan error, 1)
	go func() { closed <- s.close() }()
	if ctx.Err() != nil {
		c.drain() // calls end with the Host: they say so
	}
	_ = c.Close()
	// A handler that waits for a client that doesn't read never ends.
	late := time.NewTimer(closing)
	defer late.Stop()
	var hostErr error
	for waiting := 2; waiting > 0; waiting-- {
		select {
		case <-idle:
			idle = nil
		case hostErr = <-closed:
			closed = nil
		case <-late.C:
			waiting = 0
			hostErr = errors.New("the sessions in the workers didn't end in time")
		}
	}
	return errors.Join(c.failure(), s.failure(), hostErr)
}

// closing is how long the end of all sessions may take.
const closing = 10 * time.Second

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// LostError is a server that ended in mid-call. The call may have been executed,
// whole or in part.
type LostError struct {
	Server string
	Cause  error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the MCP server %s was lost in mid-call: %v", e.Server, e.Cause)
}

func (e *LostError) Unwrap() error { return e.Cause }

// Call runs a tool of the server, which is started if it doesn't run. The
// arguments are a JSON object; the server checks them. A server that ends
// meanwhile is a [LostError]; an error that the server answers is a result that
// failed.
func (s *Server) Call(ctx context.Context, tool string, args json.RawMessage, progress func(Progress)) (*Result, error) {
	if len(args) > MaxArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, an MCP server is sent %d at most", len(args), MaxArguments)
	}
	r, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case r.calls <- struct{}{}:
		defer func() { <-r.calls }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return r.call(ctx, tool, args, progress)
}

func (r *run) call(ctx context.Context, tool string, args json.RawMessage, progress func(Progress)) (*Result, error) {
	key := r.key()
	tell, end := relay(progress)
	answer, forget := r.conn.expect(key, `{"content":[]}`, tell)
	defer end()
	defer forget()
	_, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args, Meta: mcp.Meta{"progressToken": key}})
	if err == nil {
		res, err := takeResult(answer())
		if err != nil {
			return nil, fmt.Errorf("the MCP server %s: %w", r.s.c.Name, err)
		}
		return res, nil
	}
	var says *jsonrpc.Error
	switch {
	case errors.As(err, &says):
		text, err := json.Marshal(text{Type: "text", Text: clean(says.Message, MaxDescription)})
		if err != nil {
			return nil, err
		}
		return &Result{Failed: true, Content: []json.RawMessage{text}}, nil
	case r.ended():
		return nil, &LostError{Server: r.s.c.Name, Cause: r.death()}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("the MCP server %s: %w", r.s.c.Name, err)
}

// relay passes progress on in a goroutine of its own, so that a client who is
// slow to take it doesn't hold the server's answers up. What is too much is
// dropped.
func relay(progress func(Progress)) (tell func(Progress), end func()) {
	if progress == nil {
		return nil, func() {}
	}
	ch, done := make(chan Progress, 16), make(chan struct{})
	go func() {
		defer close(done)
		for p := range ch {
			progress(p)
		}
	}()
	tell = func(p Progress) {
		select {
		case ch <- p:
		default:
		}
	}
	return tell, func() { close(ch); <-done }
}

package mcpserver

import (
	"context"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
)

type opener func(ctx context.Context, asker approval.Asker, client string, changed func()) (host, error)

// server answers what is about the Host; the SDK answers the rest.
type server struct {
	open opener
	ctx  context.Context // of the Host
	warn func(string)
	hint func(string)
	conn *conn
	// unreachable is Options.Unreachable.
	unreachable func(*session.UnreachableError)
	// instructions is Options.Instructions.
	instructions func(asks bool) string
	// structured is Options.Structured.
	structured bool

	once   sync.Once
	opened chan struct{} // closed when host or err is there
	host   host
	err    error
	failed bool          // err isn't the end of the client
	news   chan struct{} // the tools have changed

	hintMu sync.Mutex
	hinted map[string]bool // how refused calls can pass, as it was said
}

func (s *server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		switch method {
		case "initialize":
			res, err := next(ctx, method, req)
			if r, ok := res.(*mcp.InitializeResult); ok && err == nil && s.instructions != nil {
				p, _ := req.GetParams().(*mcp.InitializeParams)
				r.Instructions = s.instructions(askerFor(ss, p) != nil)
			}
			return res, err
		case "notifications/initialized":
			res, err := next(ctx, method, req)
			if err == nil {
				s.begin(ss)
			}
			return res, err
		case "tools/list":
			return s.tools(ctx, ss, req.GetParams())
		case "tools/call":
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
				return s.call(ctx, ss, p)
			}
		case "resources/list":
			return s.resources(ctx, ss, req.GetParams())
		case "resources/read":
			if p, ok := req.GetParams().(*mcp.ReadResourceParams); ok {
				return s.read(ctx, ss, p)
			}
		}
		return next(ctx, method, req)
	}
}

// begin opens the Host without waiting for it.
func (s *server) begin(ss *mcp.ServerSession) {
	s.once.Do(func() {
		p := ss.InitializeParams()
		go func() {
			defer close(s.opened)
			s.host, s.err = s.open(s.ctx, askerFor(ss, p), clientName(p), s.changed)
			if s.err != nil && s.ctx.Err() == nil {
				s.failed = true
				s.warn(s.err.Error())
			}
		}()
	})
}

// get waits for the Host. A client that asks before it said that it is
// initialized is served all the same.
func (s *server) get(ctx context.Context, ss *mcp.ServerSession) (host, error) {
	s.begin(ss)
	select {
	case <-s.opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: s.err.Error()}
	}
	return s.host, nil
}

// close ends the Host, where there is one or will be.
func (s *server) close() error {
	s.once.Do(func() { close(s.opened) })
	<-s.opened
	if s.host == nil {
		return nil
	}
	return s.host.Close()
}

// failure is why there was no Host, where that wasn't the end of the client.
func (s *server) failure() error {
	select {
	case <-s.opened:
		if s.failed {
			return s.err
		}
	default:
	}
	return nil
}

func (s *server) changed() {
	select {
	case s.news <- struct{}{}:
	default: // one is on its way
	}
}

// announce tells the client that the tools have changed. The SDK would only do
// so for tools of its own list.
func (s *server) announce() {
	for {
		select {
		case <-s.news:
			_ = s.conn.Write(s.ctx, &jsonrpc.Request{Method: "notifications/tools/list_changed"})
		case <-s.ctx.Done():
			return
		}
	}
}

// clientName for the audit: one line, not too long.
func clientName(p *mcp.InitializeParams) string {
	if p == nil || p.ClientInfo == nil {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.TrimSpace(p.ClientInfo.Name+" "+p.ClientInfo.Version))
	if r := []rune(name); len(r) > 100 {
		name = string(r[:100])
	}
	return name
}

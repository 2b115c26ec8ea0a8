package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/lib/plainjson"
	"github.com/llmdo/workshop/internal/session/mcpclient"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// listTime is how long a list of tools waits for MCP servers. They go on
// starting; Config.Changed tells when their tools are there.
const listTime = 10 * time.Second

func (s *workerSession) newServer(name string) *mcpclient.Server {
	return mcpclient.New(mcpclient.Config{
		Name:   name,
		Client: s.host.c.Client,
		Start:  func(ctx context.Context) (*mcpclient.Process, error) { return s.startServer(ctx, name) },
		Changed: func() {
			s.host.forget()
			s.host.changed()
		},
		Warn: func(text string) { s.host.warn("%s (in the worker %s)", text, s.worker.Name) },
	})
}

// startServer starts an MCP server in the worker, in the session of the worker session.
func (s *workerSession) startServer(ctx context.Context, name string) (*mcpclient.Process, error) {
	v, err := s.link.get(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out, err := v.conn.Start(ctx, "mcp", protocol.Server{Server: name})
	if err != nil {
		cancel()
		return nil, err
	}
	wait := sync.OnceValue(func() error {
		var exit protocol.Exit
		err := out.Wait(&exit)
		switch {
		case err != nil: // whose server it is, is said already
			return errors.New(strings.TrimPrefix(err.Error(), "the MCP server "+name+" "))
		case exit.Signal != "":
			return fmt.Errorf("ended by %s", exit.Signal)
		}
		return fmt.Errorf("exit code %d", exit.Code)
	})
	return &mcpclient.Process{Stdin: out.Stream(wire.Stdin), Stdout: out.Stream(wire.Stdout), Stderr: out.Stream(wire.Stderr), End: cancel, Wait: wait}, nil
}

// serverTools are the own names of what the MCP servers are known to have and
// the worker is offered, sorted by server.
func (s *workerSession) serverTools() []string {
	var out []string
	for _, server := range s.serverNames() {
		for _, t := range s.servers[server].Known() {
			if own := mcpPrefix + server + separator + t.Name; s.offers(own) {
				out = append(out, own)
			}
		}
	}
	return out
}

// offers reports whether a tool of an MCP server is offered.
func (s *workerSession) offers(own string) bool { return s.grant.Load().Check(own, nil) == nil }

// serverNames are the MCP servers of which the worker is offered any tool, in
// the order of their names.
func (s *workerSession) serverNames() []string {
	var out []string
	g := s.grant.Load()
	for name := range s.servers {
		if g.CheckServer(name) == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// serverTool returns the description of a tool of an MCP server.
func (s *workerSession) serverTool(own string) (mcpclient.Tool, bool) {
	server, name, _ := tool.SplitMCP(own)
	if srv := s.servers[server]; srv != nil {
		for _, t := range srv.Known() {
			if t.Name == name {
				return t, true
			}
		}
	}
	return mcpclient.Tool{}, false
}

// listServer lists the tools of one server, which starts it.
func (s *workerSession) listServer(ctx context.Context, server string) ([]mcpclient.Tool, error) {
	tools, err := s.servers[server].List(ctx)
	s.host.forget()
	return tools, err
}

var errStarting = errors.New("it is still starting; its tools are offered as soon as it has")

// listServers lists the tools of all servers of some worker sessions at the same time,
// and for a bounded time. A server that doesn't start has no tools, and a
// warning says why.
func (h *Host) listServers(ctx context.Context, sessions []*workerSession) {
	var wg sync.WaitGroup
	for _, s := range sessions {
		for _, name := range s.serverNames() {
			wg.Go(func() {
				// One that is slow is waited for once, not by every list.
				ctx, cancel := context.WithTimeoutCause(ctx, listTime-s.servers[name].Starting(), errStarting)
				defer cancel()
				if _, err := s.listServer(ctx, name); err != nil && h.life.Err() == nil {
					h.warn("tools of the MCP server %s of %s are missing: %v", name, s.worker.Name, err)
				}
			})
		}
	}
	wg.Wait()
}

// callServer runs a tool of an MCP server.
func (c *call) callServer(ctx context.Context, server, name string) (*Result, error) {
	var progress func(mcpclient.Progress)
	if tell := c.options.Progress; tell != nil {
		progress = func(p mcpclient.Progress) { tell(Progress{Message: p.Message, Done: p.Done, Total: p.Total}) }
	}
	r, err := c.session.servers[server].Call(ctx, name, c.args, progress)
	var lost *mcpclient.LostError
	switch {
	case errors.As(err, &lost):
		return nil, &LostError{Worker: c.session.worker.Name, Tool: c.own, Known: "the MCP server " + server + ": " + lost.Cause.Error(), Cause: lost.Cause}
	case err != nil:
		return nil, err
	}
	return &Result{Structured: r.Structured, Content: r.Content, Failed: r.Failed}, nil
}

// object returns arguments that are a JSON object, each key once, in what is in it
// too: who approves the call, the audit and the server see the same. The rest is
// the server's to check.
func object(name string, args json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil || o == nil || d.More() {
		return nil, &ArgumentsError{Tool: name, Problems: []string{"they must be a JSON object"}}
	}
	return plainjson.Marshal(o)
}

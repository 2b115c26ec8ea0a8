package session

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/llmdo/workshop/internal/session/mcpclient"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// workerSession is one worker as it is offered in a Host: at the top, or as the delegate
// of another worker session. Each has a session of its own.
type workerSession struct {
	host   *Host
	worker *workshop.Worker
	parent *workerSession  // nil at the top
	prefix string          // prefix of the names of its tools
	id     string          // of the delegation; empty at the top
	life   context.Context // until close
	end    context.CancelFunc
	link   *link
	// servers are the MCP servers that the file lists, by name.
	servers map[string]*mcpclient.Server
	// grant is what is offered: what the file lists, and, once a session has told
	// it, no more than what the worker was started with.
	grant atomic.Pointer[tool.Grant]
	// restarted: the worker is another than that of the calls before, and the client
	// wasn't told yet.
	restarted atomic.Bool
	// open are the delegations of this worker session by worker; host.mu guards it.
	open map[string]*workerSession
}

func (h *Host) newSession(w *workshop.Worker, parent *workerSession, prefix string) *workerSession {
	s := &workerSession{host: h, worker: w, parent: parent, prefix: prefix, open: map[string]*workerSession{}, servers: map[string]*mcpclient.Server{}}
	above := h.life
	if parent != nil {
		above = parent.life
	}
	s.life, s.end = context.WithCancel(above)
	s.link = &link{session: s, turn: make(chan struct{}, 1)}
	s.grant.Store(&tool.Grant{Worker: w.Name, Tools: w.Definition.Offers(), TimeoutMS: tool.Millis(w.Container.Resources.Timeout.V.Milliseconds())})
	for _, o := range w.Definition.Offers() {
		if server, _, ok := tool.SplitMCP(o.Name); ok && s.servers[server] == nil {
			s.servers[server] = s.newServer(server)
		}
	}
	return s
}

// chain are the workers that delegated, the first caller first.
func (s *workerSession) chain() []string {
	var out []string
	for p := s.parent; p != nil; p = p.parent {
		out = append(out, p.worker.Name)
	}
	slices.Reverse(out)
	return out
}

// depth is 0 at the top.
func (s *workerSession) depth() int { return len(s.chain()) }

// fixed are the own names of the tools that don't depend on an MCP server, in
// the order of the documentation.
func (s *workerSession) fixed() []string {
	var out []string
	for _, spec := range tool.Specs() {
		if len(s.offersOf(spec.Name)) > 0 {
			out = append(out, spec.Name)
		}
	}
	for _, d := range s.worker.Definition.DelegatesTo {
		out = append(out, delegatePrefix+d.Name)
	}
	if len(s.worker.Definition.DelegatesTo) > 0 {
		out = append(out, endDelegation)
	}
	return out
}

// offersOf are the entries for one of our tools.
func (s *workerSession) offersOf(name string) []tool.Offer {
	var out []tool.Offer
	for _, o := range s.grant.Load().Tools {
		if o.Name == name {
			out = append(out, o)
		}
	}
	return out
}

// narrow takes over what the running worker was started with.
func (s *workerSession) narrow(running tool.Grant) {
	file := s.worker.Definition.Offers()
	next := &tool.Grant{Worker: s.worker.Name, Tools: common(file, running.Tools), TimeoutMS: running.TimeoutMS, MCP: running.MCP}
	before := s.grant.Swap(next)
	if len(tool.Excess(file, running.Tools)) > 0 || len(tool.Excess(running.Tools, file)) > 0 {
		s.host.warn("the definition of %s lists other tools than the worker was started with; only what both have is offered. Run `workshop up` to start it with the definition as it is, and start this program again if the file was changed since", s.worker.Name)
	} else if name := s.otherServer(running.MCP); name != "" {
		s.host.warn("the MCP server %s of %s isn't the one in the file, but the one that the worker was started with. Run `workshop up` to start it with the file as it is", name, s.worker.Name)
	}
	if !slices.Equal(before.Tools, next.Tools) {
		s.host.forget()
		s.host.changed()
	}
}

// otherServer names a server whose command differs from the file's.
func (s *workerSession) otherServer(running map[string]tool.Server) string {
	for _, m := range s.host.c.Workshop.MCP {
		if s.servers[m.Name] != nil && !slices.Equal(m.Command, running[m.Name].Command) {
			return m.Name
		}
	}
	return ""
}

// common are the offers of one list that the other one has as well: the
// narrower of two limits, never the union (B41).
func common(a, b []tool.Offer) []tool.Offer {
	var out []tool.Offer
	add := func(from, other []tool.Offer) {
		beyond := tool.Excess(from, other)
		for _, o := range from {
			if !slices.Contains(beyond, o) && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	add(a, b)
	add(b, a)
	return out
}

// sessions are all worker sessions, a delegate after its caller. host.mu is held.
func (h *Host) sessions() []*workerSession {
	var out []*workerSession
	var walk func(s *workerSession)
	walk = func(s *workerSession) {
		out = append(out, s)
		for _, d := range s.worker.Definition.DelegatesTo {
			if o := s.open[d.Name]; o != nil {
				walk(o)
			}
		}
	}
	for _, s := range h.roots {
		walk(s)
	}
	return out
}

// close ends the session of a worker session and of all below it.
func (s *workerSession) close() {
	s.end()
	s.host.mu.Lock()
	open := s.open
	s.open = map[string]*workerSession{}
	s.host.mu.Unlock()
	for _, d := range open {
		d.close()
	}
	for _, srv := range s.servers {
		srv.Close()
	}
	s.link.close()
}

// worker finds a worker of the workshop; nil where there is none.
func (h *Host) worker(name string) *workshop.Worker {
	for i := range h.c.Workshop.Workers {
		if h.c.Workshop.Workers[i].Name == name {
			return &h.c.Workshop.Workers[i]
		}
	}
	return nil
}

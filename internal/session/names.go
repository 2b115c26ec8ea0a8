package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/tool"
)

// separator is between a worker and its tool, as between an MCP server and
// its own.
const separator = "__"

// MaxName is the longest name of a tool that is offered: clients take no longer
// ones (the specification of MCP, 2025-11-25, server/tools).
const MaxName = 128

const (
	delegatePrefix = "delegate_"
	endDelegation  = "end_delegation"
	mcpPrefix      = "mcp" + separator
)

// checkName tells what is wrong with the name of a tool.
func checkName(name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("the tool %s has a name of %d characters, clients take %d: shorten the names of the workers", name, len(name), MaxName)
	}
	if at := strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) }); at >= 0 {
		return fmt.Errorf("the tool %q has a name with %q, clients take only letters, digits, _ and -: rename the worker", name, name[at:][:1])
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// checkNames looks at all names that the Host begins with. Names are looked up
// in a table, never taken apart: a worker may hold __ in its own.
func (h *Host) checkNames() error {
	taken := map[string]*workerSession{}
	for _, s := range h.roots {
		if err := s.claim(taken); err != nil {
			return err
		}
	}
	return nil
}

// claim puts the fixed names of a worker session into a table, and refuses one that is
// another's already.
func (s *workerSession) claim(taken map[string]*workerSession) error {
	for _, own := range s.fixed() {
		full := s.prefix + own
		if err := checkName(full); err != nil {
			return err
		}
		if other := taken[full]; other != nil {
			return fmt.Errorf("the tool %s would be %s of %s and a tool of %s: rename one of the workers", full, own, s.worker.Name, other.worker.Name)
		}
		taken[full] = s
	}
	return nil
}

// target is the tool of a full name.
type target struct {
	session *workerSession
	own     string // the tool's own name
}

// table is what is offered at a time.
type table struct {
	byName map[string]target
	order  []string
}

// table returns what is offered now: of each worker session the fixed names first, then what
// its MCP servers have and no fixed name is.
func (h *Host) table() *table {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names != nil {
		return h.names
	}
	t := &table{byName: map[string]target{}}
	add := func(s *workerSession, own string) bool {
		full := s.prefix + own
		if _, taken := t.byName[full]; taken || checkName(full) != nil {
			return false
		}
		t.byName[full] = target{s, own}
		return true
	}
	sessions := h.sessions()
	for _, s := range sessions {
		for _, own := range s.fixed() {
			add(s, own)
		}
	}
	for _, s := range sessions {
		for _, own := range s.fixed() {
			t.order = append(t.order, s.prefix+own)
		}
		for _, own := range s.serverTools() {
			if add(s, own) {
				t.order = append(t.order, s.prefix+own)
			} else {
				go h.warn("the tool %s of an MCP server in %s isn't offered: another tool has its name, or it is longer than %d characters", own, s.worker.Name, MaxName)
			}
		}
	}
	h.names = t
	return t
}

// forget drops the table, because what is offered has changed.
func (h *Host) forget() {
	h.mu.Lock()
	h.names = nil
	h.mu.Unlock()
}

// find returns the tool of a full name. A name that may be an MCP server's starts
// the server, which alone knows its tools. Where the session was lost, what is offered
// is that of the next one.
func (h *Host) find(ctx context.Context, name string) (target, error) {
	s := h.nearest(name)
	if s != nil && s.link.lost() {
		_, _ = s.link.get(ctx) // the call says why there is none
	}
	if t, ok := h.table().byName[name]; ok {
		return t, nil
	}
	if s != nil {
		if server, _, ok := tool.SplitMCP(strings.TrimPrefix(name, s.prefix)); ok && s.servers[server] != nil {
			if _, err := s.listServer(ctx, server); err != nil {
				return target{}, err
			}
			if t, ok := h.table().byName[name]; ok {
				return t, nil
			}
		}
	}
	return target{}, h.notOffered(name, s)
}

// nearest is the worker session that a name which is offered by nobody is likely meant
// for; nil where it has no worker's prefix.
func (h *Host) nearest(name string) (best *workerSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions() {
		if strings.HasPrefix(name, s.prefix) && (best == nil || len(s.prefix) > len(best.prefix)) {
			best = s
		}
	}
	return best
}

// maxTold names of tools in an error.
const maxTold = 40

func (h *Host) notOffered(name string, s *workerSession) error {
	e := &tool.NotOfferedError{Tool: name}
	if s != nil {
		e.Worker, e.Tool = s.worker.Name, strings.TrimPrefix(name, s.prefix)
	} else {
		e.Why = "the names of tools begin with the name of a worker"
	}
	t := h.table()
	for _, full := range t.order {
		if s != nil && t.byName[full].session != s {
			continue
		}
		if len(e.Offered) == maxTold {
			e.Offered = append(e.Offered, "…")
			break
		}
		e.Offered = append(e.Offered, full)
	}
	return e
}

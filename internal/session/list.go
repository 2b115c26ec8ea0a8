package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/tool"
)

// Tools lists what is offered now, sorted by worker in the order of the file,
// then as documented. It starts the MCP servers of the workers, and waits ten
// seconds for them at most. A Host of one worker connects to it, because what
// it was started with may be less than its file lists. Where it can't be reached
// the list is the file's, and a call says why it can't.
func (h *Host) Tools(ctx context.Context) ([]Tool, error) {
	if h.life.Err() != nil {
		return nil, ErrClosed
	}
	h.mu.Lock()
	sessions := h.sessions()
	h.mu.Unlock()
	h.connect(ctx, sessions)
	h.listServers(ctx, sessions)
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	t := h.table()
	out := make([]Tool, 0, len(t.order))
	for _, full := range t.order {
		if d, ok := t.byName[full].describe(full); ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// Tool returns one tool as [Host.Tools] does, false where it isn't offered. Of the
// MCP servers it starts only the one that the name is of.
func (h *Host) Tool(ctx context.Context, name string) (Tool, bool) {
	if h.life.Err() != nil {
		return Tool{}, false
	}
	h.mu.Lock()
	sessions := h.sessions()
	h.mu.Unlock()
	h.connect(ctx, sessions)
	t, err := h.find(ctx, name)
	if err != nil {
		return Tool{}, false
	}
	return t.describe(name)
}

// connect opens the sessions that a list needs. With all workers of a workshop
// that would be a process in each of them, so only those with MCP servers are.
func (h *Host) connect(ctx context.Context, sessions []*workerSession) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errors.New("it isn't up yet, or doesn't answer"))
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range sessions {
		if h.all && len(s.servers) == 0 {
			continue
		}
		wg.Go(func() {
			// Without it, the tools are those of the file; a call says what is wrong.
			_, _ = s.link.get(ctx)
		})
	}
	wg.Wait()
}

// describe makes the description of one tool.
func (t target) describe(full string) (Tool, bool) {
	out := Tool{Name: full, Worker: t.session.worker.Name}
	if spec, ok := tool.Find(t.own); ok {
		out.Title, out.Description = spec.Title, spec.Description
		if note := limitNote(t.session.offersOf(t.own)); note != "" {
			out.Description += " " + note
		}
		out.ReadOnly, out.Destructive, out.Idempotent, out.OpenWorld = spec.ReadOnly, spec.Destructive, spec.Idempotent, spec.OpenWorld
		in := schemaOf(spec.Args, spec.Name)
		out.InputSchema, out.BriefSchema, out.OutputSchema, out.Rendered = in.json, in.brief, schemaOf(spec.Result, "").json, true
		return out, true
	}
	if d, ok := t.session.describeDelegation(t.own); ok {
		d.Name, d.Worker = full, out.Worker
		return d, true
	}
	d, ok := t.session.serverTool(t.own)
	if !ok {
		return out, false // the list has changed since
	}
	out.Title, out.InputSchema, out.OutputSchema = d.Title, d.InputSchema, d.OutputSchema
	server, _, _ := tool.SplitMCP(t.own)
	out.Description = strings.TrimSpace(fmt.Sprintf("%s\n\n[A tool of the MCP server %s, which runs in the worker %s.]", d.Description, server, out.Worker))
	out.ReadOnly, out.Destructive, out.Idempotent, out.OpenWorld = d.ReadOnly, d.Destructive, d.Idempotent, d.OpenWorld
	return out, true
}

// limitNote says in words what a tool with limits takes; empty for none.
func limitNote(offers []tool.Offer) string {
	var commands, hosts []string
	for _, o := range offers {
		switch {
		case o.Limit == "":
			return ""
		case tool.CheckOffer(o) != nil:
		case o.Name == tool.Shell:
			commands = append(commands, commandWords(o.Limit))
		case o.Name == tool.FetchURL:
			hosts = append(hosts, hostWords(strings.TrimPrefix(o.Limit, "domain:")))
		}
	}
	switch {
	case len(commands) > 0:
		return "Only these commands: " + strings.Join(slices.Compact(commands), "; ") + ". Each is one plain command: no operators, redirections, variables or patterns."
	case len(hosts) > 0:
		return "Only these hosts: " + strings.Join(slices.Compact(hosts), "; ") + "."
	}
	return "No call of it is allowed: its limit can't be read."
}

// commandWords says `git log:*` as "those that begin with git log".
func commandWords(limit string) string {
	words := strings.Join(strings.Fields(limit), " ")
	for _, more := range []string{" :*", ":*", " *"} {
		if rest, ok := strings.CutSuffix(words, more); ok {
			return "those that begin with `" + rest + "`"
		}
	}
	return "exactly `" + words + "`"
}

func hostWords(host string) string {
	if rest, ok := strings.CutPrefix(host, "**."); ok {
		return "all below " + rest
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		return "those directly below " + rest
	}
	return host
}

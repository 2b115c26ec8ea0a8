package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/tool"
)

// DelegateArgs are the arguments of delegate_WORKER.
type DelegateArgs struct {
	Task string `json:"task" jsonschema:"what the other worker is to do, for whoever approves it and for the record"`
}

// DelegateResult is an open delegation.
type DelegateResult struct {
	Worker       string          `json:"worker"`
	Session      string          `json:"session" jsonschema:"names the delegation for end_delegation"`
	Description  string          `json:"description,omitempty"`
	Instructions string          `json:"instructions" jsonschema:"how the worker is to do its task; follow them when you call its tools"`
	Tools        []DelegatedTool `json:"tools" jsonschema:"tools of the worker, which can be called from now on"`
	Depth        int             `json:"depth" jsonschema:"how deep delegations stand in each other, from 1"`
}

// DelegatedTool is one tool of a delegate.
type DelegatedTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// EndArgs are the arguments of end_delegation; one of them is enough.
type EndArgs struct {
	Worker  string `json:"worker,omitempty" jsonschema:"the worker whose delegation ends"`
	Session string `json:"session,omitempty" jsonschema:"the session of the delegation"`
}

// EndResult is what was ended.
type EndResult struct {
	Worker  string `json:"worker"`
	Session string `json:"session"`
}

// describeDelegation describes the host's own tools of a worker session.
func (s *workerSession) describeDelegation(own string) (Tool, bool) {
	if own == endDelegation {
		return endTool(), true
	}
	name, ok := strings.CutPrefix(own, delegatePrefix)
	w := s.host.worker(name)
	if !ok || w == nil || !s.delegatesTo(name) {
		return Tool{}, false
	}
	return delegateTool(name, s.prefix, w.Definition.Description), true
}

func delegateTool(name, prefix, description string) Tool {
	text := "Delegates a task to the worker " + name + ". Gives its instructions and its tools, which are offered from then on with " + prefix + name + separator + " in front; they run where that worker runs, with what it is given."
	if d := strings.TrimSpace(description); d != "" {
		text += " " + name + ": " + d
	}
	return Tool{Title: "Delegate to " + name, Description: text, InputSchema: schemaOf(DelegateArgs{}, "").json, OutputSchema: schemaOf(DelegateResult{}, "").json, Rendered: true}
}

func endTool() Tool {
	return Tool{Title: "End a delegation", Idempotent: true,
		Description: "Ends what delegate_ tools began: the worker's session, and everything that its tools have started.",
		InputSchema: schemaOf(EndArgs{}, "").json, OutputSchema: schemaOf(EndResult{}, "").json, Rendered: true}
}

func (s *workerSession) delegatesTo(name string) bool {
	for _, d := range s.worker.Definition.DelegatesTo {
		if d.Name == name {
			return true
		}
	}
	return false
}

// delegate opens a session of the delegate, with its own tools and no others.
func (c *call) delegate(ctx context.Context) (*Result, error) {
	s, h := c.session, c.host
	name := strings.TrimPrefix(c.own, delegatePrefix)
	h.mu.Lock()
	open := s.open[name]
	h.mu.Unlock()
	if open == nil {
		var err error
		if open, err = s.openDelegate(ctx, name); err != nil {
			return nil, fmt.Errorf("%s can't delegate to %s: %w", s.worker.Name, name, err)
		}
		h.changed()
	}
	h.listServers(ctx, []*workerSession{open})
	return c.delegation(open), nil
}

func (s *workerSession) openDelegate(ctx context.Context, name string) (*workerSession, error) {
	h := s.host
	w := h.worker(name)
	if w == nil {
		return nil, errors.New("there is no such worker")
	}
	if depth := s.depth() + 1; depth > h.c.MaxDepth {
		return nil, fmt.Errorf("that would be delegation %d in each other (%s), at most %d are allowed; do the task with the tools at hand", depth, strings.Join(append(append(s.chain(), s.worker.Name), name), " → "), h.c.MaxDepth)
	}
	if err := s.narrower(name, w.Definition.Offers()); err != nil {
		return nil, err
	}
	d := h.newSession(w, s, s.prefix+name+separator)
	if _, err := d.link.get(ctx); err != nil {
		d.close()
		return nil, err
	}
	if err := s.adopt(d); err != nil {
		d.close()
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.open[name], nil
}

// adopt takes an open delegate in, unless another call was faster or its names
// are taken.
func (s *workerSession) adopt(d *workerSession) error {
	if err := s.narrower(d.worker.Name, d.grant.Load().Tools); err != nil {
		return err
	}
	h := s.host
	names := h.table().byName
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.life.Err() != nil {
		return ErrClosed
	}
	if s.open[d.worker.Name] != nil {
		go d.close()
		return nil
	}
	taken := map[string]*workerSession{}
	for full, t := range names {
		taken[full] = t.session
	}
	if err := d.claim(taken); err != nil {
		return err
	}
	h.opened++
	d.id = fmt.Sprintf("%s-%d", d.worker.Name, h.opened)
	s.open[d.worker.Name] = d
	h.names = nil
	return nil
}

// narrower refuses a delegate that has a tool which its caller hasn't (B40). The
// loader refuses such files; this is what runs.
func (s *workerSession) narrower(name string, offers []tool.Offer) error {
	beyond := tool.Excess(offers, s.grant.Load().Tools)
	if len(beyond) == 0 {
		return nil
	}
	var names []string
	for _, o := range beyond {
		names = append(names, o.String())
	}
	return fmt.Errorf("%s has tools that %s hasn't (%s): a delegate may do no more than its caller. Give them to %s as well, or take them from %s", name, s.worker.Name, strings.Join(names, ", "), s.worker.Name, name)
}

// delegation makes the result of an open delegation.
func (c *call) delegation(d *workerSession) *Result {
	r := DelegateResult{Worker: d.worker.Name, Session: d.id, Description: d.worker.Definition.Description, Instructions: d.worker.Definition.Instructions, Tools: []DelegatedTool{}, Depth: d.depth()}
	t := c.host.table()
	for _, full := range t.order {
		if to := t.byName[full]; to.session == d {
			if described, ok := to.describe(full); ok {
				r.Tools = append(r.Tools, DelegatedTool{full, described.Description})
			}
		}
	}
	l := &lines{}
	l.addf("Delegated to %s, session %s, depth %d.", r.Worker, r.Session, r.Depth)
	l.add("Its tools can be called now:")
	for _, t := range r.Tools {
		l.addf("- %s: %s", t.Name, t.Description)
	}
	l.addf("End it with %s%s when the task is done.", c.session.prefix, endDelegation)
	if r.Instructions != "" {
		l.add("\nInstructions of " + r.Worker + ":\n")
		l.add(r.Instructions)
	}
	return structured(r, l.String())
}

// structured makes a result of the host's own.
func structured(v any, text string) *Result {
	raw, err := json.Marshal(v)
	if err != nil { // texts and numbers
		panic(err)
	}
	return &Result{Structured: raw, Content: []json.RawMessage{textBlock(text)}, Rendered: true}
}

// endDelegation closes a delegation of the worker session, and those below it.
func (c *call) endDelegation() (*Result, error) {
	var a EndArgs
	if err := tool.Decode(c.args, &a); err != nil {
		return nil, &ArgumentsError{Tool: c.own, Problems: []string{err.Error()}}
	}
	if a == (EndArgs{}) {
		return nil, &ArgumentsError{Tool: c.own, Problems: []string{"give worker or session"}}
	}
	h := c.host
	h.mu.Lock()
	var found *workerSession
	var open []string
	for _, s := range h.sessions() {
		if s.parent == nil || !slices.Contains(s.chainSessions(), c.session) {
			continue
		}
		open = append(open, s.id)
		if (found == nil || s.depth() < found.depth()) && (a.Worker == "" || a.Worker == s.worker.Name) && (a.Session == "" || a.Session == s.id) {
			found = s
		}
	}
	if found != nil {
		delete(found.parent.open, found.worker.Name)
		h.names = nil
	}
	h.mu.Unlock()
	if found == nil {
		if len(open) == 0 {
			return nil, errors.New("no delegation is open")
		}
		return nil, fmt.Errorf("there is no such delegation; open are %s", strings.Join(open, ", "))
	}
	found.close()
	h.changed()
	return structured(EndResult{Worker: found.worker.Name, Session: found.id}, fmt.Sprintf("Ended %s; its tools are gone.", found.id)), nil
}

// chainSessions are the worker sessions above a worker session.
func (s *workerSession) chainSessions() []*workerSession {
	var out []*workerSession
	for p := s.parent; p != nil; p = p.parent {
		out = append(out, p)
	}
	return out
}

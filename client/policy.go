package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
)

// Policy is what workers may reach: by the file as it is now, and by the guard.
type Policy struct {
	// Workshop is its name, Project that on the engine, File the workshop file.
	Workshop, Project, File string
	// Rooms are workers that may reach the same.
	Rooms []Room
	// NoNetwork are the workers without one.
	NoNetwork []string
	// Running is what the guard does; nil where none answers.
	Running *Running
}

// Room is a room with its lines.
type Room struct {
	Room        string
	Workers     []string
	Mode        firewall.Mode
	Allow, Deny []Line
}

// Line is a line of allow or deny.
type Line struct {
	// Target is a name, a wildcard or a range; Ports are "80,443", or "all".
	Target, Ports string
	Private, ECH  bool
	// Upload is the line's budget; empty: none.
	Upload string
	// Endpoint is the name of the line's endpoint, and Credential of what the guard adds;
	// empty: none.
	Endpoint, Credential string
	// Source is where it is written: workshop.yaml:12.
	Source string
}

// Running is what the guard does now.
type Running struct {
	// Current reports whether the guard has the policy of the file.
	Current bool
	Started time.Time
	// Generation counts the changes since then.
	Generation uint64
	// Live are the changes that aren't in the file.
	Live []firewall.Live
	// Learning has the end of each room's learning.
	Learning map[string]time.Time
}

// Policy reads the workshop file, which may have changed since Open, and asks the guard.
func (w *Workshop) Policy(ctx context.Context) (*Policy, error) {
	tools, err := w.open()
	if err != nil {
		return nil, err
	}
	v, err := tools.ViewPolicy(ctx, "")
	if err != nil {
		return nil, typed(err)
	}
	d := v.Document("")
	p := &Policy{Workshop: d.Workshop, Project: d.Project, File: v.File, NoNetwork: d.None}
	for _, r := range d.Rooms {
		p.Rooms = append(p.Rooms, Room{r.Room, r.Workers, r.Mode, policyLines(r.Allow), policyLines(r.Deny)})
	}
	if r := d.Running; r != nil {
		p.Running = &Running{r.Current, r.Started, r.Generation, r.Live, r.Learning}
	}
	return p, nil
}

func policyLines(rules []app.PolicyRule) (out []Line) {
	for _, r := range rules {
		out = append(out, Line{r.Target, r.Ports, r.Private, r.ECH, r.Upload, r.At, r.Credential, r.Line})
	}
	return out
}

// ChangeOptions say for whom, and how long, a change holds. The zero value is for all
// workers: an allow until the guard ends, a deny until the workshop stops.
type ChangeOptions struct {
	Worker string // for its room alone, which it may share
	For    time.Duration
	// Private: the names may have private addresses. ECH: TLS with an encrypted server name
	// may pass by its outer name. Both are for Allow.
	Private, ECH bool
}

// Change is what a change did.
type Change struct {
	// Lines are what changed, as workshop.yaml would have them; none: it was so already.
	Lines []string
	// Workers whom it is for, sorted.
	Workers []string
	// Until is when it ends; zero: it has no end of its own.
	Until time.Time
	// Ended is how many connections were reset.
	Ended int
}

// Allow opens hosts, HOST[:PORT] as `workshop firewall allow` takes them, in the running
// guard; the file is not changed. What a line of the file denies stays closed.
func (w *Workshop) Allow(ctx context.Context, hosts []string, o ChangeOptions) (*Change, error) {
	return w.change(ctx, hosts, o, false)
}

// Deny closes hosts in the running guard, and ends their connections. It wins over every
// line of allow.
func (w *Workshop) Deny(ctx context.Context, hosts []string, o ChangeOptions) (*Change, error) {
	return w.change(ctx, hosts, o, true)
}

func (w *Workshop) change(ctx context.Context, hosts []string, o ChangeOptions, deny bool) (*Change, error) {
	tools, err := w.open()
	if err != nil {
		return nil, err
	}
	done, err := tools.ChangeLive(ctx, app.RuleChange{Deny: deny, Worker: o.Worker, For: o.For, Private: o.Private && !deny, ECH: o.ECH && !deny}, hosts)
	if err != nil {
		return nil, typed(err)
	}
	c := &Change{Workers: done.Workers, Until: done.Until, Ended: done.Cut}
	for _, r := range done.Rules {
		c.Lines = append(c.Lines, app.RuleLine(r, deny))
	}
	return c, nil
}

// Reloaded is what a reload did.
type Reloaded struct {
	// Replaced reports whether the guard was given other lines.
	Replaced bool
	// Generation is the guard's now.
	Generation uint64
	// Dropped is how many live changes a reset ended.
	Dropped int
	// Unsaved are the live changes that the file doesn't have, "allow HOST:PORT".
	Unsaved []string
	// Left is what only `workshop up` does, a line each.
	Left []string
}

// Reload gives the running guard the lines of the workshop file as it is now. No worker is
// restarted; connections that no line allows any more end. reset drops all live changes,
// ends learning, and forgets what upload budgets have spent. What needs `workshop up` is an
// error, and changes nothing.
func (w *Workshop) Reload(ctx context.Context, reset bool) (*Reloaded, error) {
	tools, err := w.open()
	if err != nil {
		return nil, err
	}
	done, err := tools.Reload(ctx, reset)
	if err != nil {
		return nil, typed(err)
	}
	return &Reloaded{done.Replaced, done.State.Generation, done.Dropped, done.Unsaved, done.Left}, nil
}

// Event is what the guard let through, refused, or changed: a line of `workshop firewall
// log`, whose schema is event.schema.json of package schemas. Names and addresses come from
// inside workers.
type Event struct {
	Time     time.Time `json:"time"`
	Room     string    `json:"room"`
	Workers  []string  `json:"workers"`
	Kind     string    `json:"kind"`    // dns, tls, http, tcp, proxy, endpoint, inbound, kernel, guard
	Verdict  string    `json:"verdict"` // deny, allow, end, note
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	Port     uint16    `json:"port"`
	Protocol string    `json:"protocol"`
	Reason   string    `json:"reason"`
	Rule     string    `json:"rule"`    // the line that decided
	Suggest  string    `json:"suggest"` // the line that would allow it
	Why      string    `json:"why"`     // the reason in words
	// BytesUp and BytesDown are those of ended connections; up is from the worker.
	BytesUp   uint64 `json:"bytes_up"`
	BytesDown uint64 `json:"bytes_down"`
	// Count is how many equal events are joined in this one.
	Count uint64 `json:"count"`
}

// EventOptions select events. The zero value has all that the log still has, without the
// ends of connections.
type EventOptions struct {
	Worker string // only those of its room
	Since  time.Time
	Denied bool // only refusals
	Ends   bool // ends of connections, too
	// Follow goes on with what comes, until the context ends, whose cause is the error then.
	Follow bool
}

// Events hands the guard's events to a function, one after the other. An error of it ends
// the reading, and is returned.
func (w *Workshop) Events(ctx context.Context, o EventOptions, each func(Event) error) error {
	tools, err := w.open()
	if err != nil {
		return err
	}
	l := app.GuardLog{Ends: o.Ends, Denied: o.Denied, Worker: o.Worker, Tail: -1}
	if !o.Since.IsZero() {
		l.Since = o.Since.Format(time.RFC3339Nano)
	}
	var own error // of the function
	err = tools.GuardEvents(ctx, l, o.Follow, func(line []byte) error {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil // not an event that this version knows
		}
		own = each(e)
		return own
	})
	if own != nil || err == nil {
		return own
	}
	return typed(err)
}

// open returns the workshop's tools until it is closed.
func (w *Workshop) open() (*app.Tools, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	return w.tools, nil
}

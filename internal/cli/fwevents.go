package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// maxEventLine bounds a line of the guard's log, in bytes: the longest that it
// writes names all workers of a room. A longer one is skipped.
const maxEventLine = 256 << 10

// eventReader takes the guard's log as the engine gives it, and hands on the
// events in it. What isn't an event (READY, a crash's last words) is skipped.
// Names and addresses in events come from inside workers: whatever shows them
// to a person goes through [printable].
type eventReader struct {
	// each gets the line as the guard wrote it, with its newline, and what it
	// says. An error ends the reading.
	each func(raw []byte, l events.Line) error
	// stamped tells that each line begins with the engine's time.
	stamped bool
	// first and last are the engine's times of the first and last line, an
	// event or not; zero without stamped.
	first, last time.Time

	rest []byte
	skip bool // until the end of a line that is too long
}

// Write implements [io.Writer].
func (r *eventReader) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, after, ended := bytes.Cut(b, []byte("\n"))
		b = after
		if !r.skip && len(r.rest)+len(part) > maxEventLine {
			r.skip = true
		}
		if !r.skip {
			r.rest = append(r.rest, part...)
		}
		if !ended {
			break
		}
		line := r.rest
		if r.skip {
			line = nil
		}
		r.rest, r.skip = r.rest[:0], false
		if err := r.line(line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (r *eventReader) line(line []byte) error {
	if r.stamped {
		stamp, rest, ok := bytes.Cut(line, []byte(" "))
		t, err := time.Parse(time.RFC3339Nano, string(stamp))
		if !ok || err != nil {
			return nil
		}
		if r.first.IsZero() {
			r.first = t
		}
		r.last, line = t, rest
	}
	var l events.Line
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &l) != nil || l.Verdict == "" || l.Time.IsZero() {
		return nil
	}
	return r.each(append(slices.Clone(line), '\n'), l)
}

// readEvents reads the events in the guard's log.
func readEvents(ctx context.Context, e engine.Engine, project string, o engine.LogsOptions, r *eventReader) error {
	o.Stdout, o.Stderr, o.Timestamps = r, io.Discard, r.stamped
	if o.Tail == "" {
		o.Tail = "all"
	}
	return e.Logs(ctx, project, []string{compose.GuardService}, o)
}

// eventTarget is what an event is about, as a person writes it: "name:port",
// the name alone of a question to a name server.
func eventTarget(l events.Line) string {
	what := l.Name
	if what == "" {
		what = l.Address
	}
	if l.Protocol != "dns" && l.Port != 0 {
		what = net.JoinHostPort(what, strconv.Itoa(int(l.Port)))
	}
	if l.Protocol != "" && l.Protocol != "dns" && l.Protocol != "tcp" {
		what += "/" + l.Protocol
	}
	return app.Printable(what)
}

// opening is what opens one refused thing: the line for network.allow, and the
// command that does it in the running guard.
type opening struct{ line, command string }

// openingOf reads what an event suggests; nothing where no line helps.
func openingOf(l events.Line, worker string) (o opening, ok bool) {
	if l.Suggest == "" || l.Verdict != events.Deny {
		return o, false
	}
	o.line = app.Printable(l.Suggest)
	if worker == "" && len(l.Workers) > 0 {
		worker = app.Printable(l.Workers[0])
	}
	host, port := "", l.Port
	if name, err := firewall.ParseName(l.Name); err == nil {
		host = name.String()
	}
	if strings.HasPrefix(l.Suggest, "{cidr:") {
		host = l.Address
	}
	if l.Protocol == "dns" {
		port = 0
	}
	if host == "" || worker == "" || app.Printable(host) != host {
		return o, true // the line alone
	}
	o.command = allowCommand(host, port, l.Suggest, worker)
	return o, true
}

// refusal is one thing that was refused, however often and on whichever way it
// was tried.
type refusal struct {
	target string
	name   string // asked for, if it was one
	dns    bool   // only its addresses were asked for
	reason string
	rule   string // that decided, as the guard writes it
	opening
}

// deniedBy says which deny line it was.
func (x refusal) deniedBy() string {
	if strings.HasPrefix(x.rule, firewall.LiveLine) {
		return "a live change"
	}
	return x.rule
}

// refusals gathers what was refused to a worker: a name that was looked up and
// then connected to is one entry.
type refusals struct {
	worker string
	list   []refusal

	// A worker can be refused any number of names: none is looked for in the list.
	seen      map[[2]string]bool // target and reason
	connected map[string]bool    // names that a connection was for
	asked     map[string][]int   // names whose addresses alone were asked for: where in the list
}

// refusalOf reads an event; not ok where it refuses nothing to the worker.
func refusalOf(l events.Line, worker string) (x refusal, ok bool) {
	if l.Verdict != events.Deny || !slices.Contains(l.Workers, worker) {
		return x, false
	}
	x = refusal{target: eventTarget(l), name: l.Name, dns: l.Protocol == "dns", reason: l.Reason, rule: app.Printable(l.Rule)}
	x.opening, _ = openingOf(l, worker)
	return x, true
}

func (r *refusals) add(l events.Line) {
	x, ok := refusalOf(l, r.worker)
	if !ok {
		return
	}
	if r.seen == nil {
		r.seen, r.connected, r.asked = map[[2]string]bool{}, map[string]bool{}, map[string][]int{}
	}
	what := [2]string{x.target, x.reason}
	if r.seen[what] {
		return
	}
	r.seen[what] = true
	asked := r.asked[x.name]
	switch {
	case x.name == "":
	case x.dns && r.connected[x.name]: // the connection says more
		return
	case x.dns:
		r.asked[x.name] = append(asked, len(r.list))
	default:
		r.connected[x.name] = true
		if len(asked) > 0 {
			r.list[asked[0]], r.asked[x.name] = x, asked[1:]
			return
		}
	}
	r.list = append(r.list, x)
}

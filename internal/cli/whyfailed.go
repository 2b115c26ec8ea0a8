package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// codeKilled is what a command ends with that SIGKILL ended.
const codeKilled = 128 + 9

// maxDenials are named after a failed command; the log has the others.
const maxDenials = 5

// whyFailed says what of a worker's boundary may be why a command failed in it.
// It is silent where the file can't be read: the command's own failure is what
// matters.
func (a *app) whyFailed(ctx context.Context, e engine.Engine, t target, worker string, code int, since time.Time) {
	if a.set.quiet || t.file == "" {
		return
	}
	s, err := a.readSource(t.file)
	if err != nil || s.w == nil {
		return
	}
	w := s.worker(worker)
	if w == nil {
		return
	}
	hints := &failure{}
	switch {
	case code == codeKilled:
		hints.hint("%d is SIGKILL: most often a program needed more than the memory limit of %s (resources.memory of %s)",
			code, w.Container.Resources.Memory.V, worker)
	case w.Container.Network.Mode.V == firewall.None:
		hints.hint("%s has no network; if that is why it failed, allow what it needs in %s: `network: {mode: restricted, allow: [HOST]}`",
			worker, a.shown(t.file))
	case a.networkDown(ctx, e, t, worker, hints):
	default:
		a.denialHints(ctx, e, t, w, since, hints)
	}
	a.printFailure(hints)
}

// networkDown tells whether a worker's room or guard isn't running, and says so.
func (a *app) networkDown(ctx context.Context, e engine.Engine, t target, worker string, f *failure) bool {
	seen, err := e.Observe(ctx, t.project)
	if err != nil {
		return false
	}
	for _, down := range stopped(seen, worker) {
		f.hint("the %s doesn't run, so %s has no network: `workshop up` repairs it", down, worker)
	}
	return len(f.hints) > 0
}

// stopped names what a worker's network needs and doesn't run: its room, the
// guard. Without a name it is about all workers.
func stopped(seen engine.Observed, worker string) []string {
	rooms, guard, needed := map[string]bool{}, false, false
	for _, c := range seen.Containers {
		rooms[c.ID] = c.State == "running"
		guard = guard || c.Role == "guard" && c.State == "running"
	}
	var out []string
	for _, c := range seen.Containers {
		if c.NetworkOf == "" || worker != "" && c.Service != worker {
			continue
		}
		needed = true
		if !rooms[c.NetworkOf] && !slices.Contains(out, "room") {
			out = append(out, "room")
		}
	}
	if needed && !guard {
		out = append(out, "guard")
	}
	return out
}

// denialHints names what the guard refused to a worker since a time, and the
// lines that would allow it.
func (a *app) denialHints(ctx context.Context, e engine.Engine, t target, w *workshop.Worker, since time.Time, f *failure) {
	var log bytes.Buffer
	o := engine.LogsOptions{Since: since.Format(time.RFC3339Nano), Tail: "all", Stdout: &log, Stderr: &log}
	if err := e.Logs(ctx, t.project, []string{compose.GuardService}, o); err != nil {
		return
	}
	refused, lines, why := denials(log.Bytes(), w.Name)
	if len(refused) == 0 {
		return
	}
	text := "meanwhile the guard refused " + strings.Join(refused, ", ")
	if len(lines) > 0 {
		text += "; to allow it, add to network.allow in " + a.shown(t.file) + ":\n- " + strings.Join(lines, "\n- ")
	}
	f.hint("%s", text)
	for _, reason := range why {
		f.hint("%s: %s", reason, firewall.Why(reason))
	}
}

// denials reads the guard's events: what was refused to a worker, the lines
// that it proposes, and the reasons that aren't a missing line. Names come from
// inside the worker.
func denials(log []byte, worker string) (refused, lines, why []string) {
	for line := range bytes.Lines(log) {
		var e struct {
			Workers                                           []string
			Name, Address, Protocol, Verdict, Reason, Suggest string
			Port                                              uint16
		}
		if json.Unmarshal(line, &e) != nil || e.Verdict != "deny" || !slices.Contains(e.Workers, worker) {
			continue
		}
		what := e.Name
		if what == "" {
			what = e.Address
		}
		if e.Protocol != "dns" && e.Port != 0 {
			what = net.JoinHostPort(what, strconv.Itoa(int(e.Port)))
		}
		if e.Protocol != "dns" && e.Protocol != "tcp" {
			what += "/" + e.Protocol
		}
		if e.Reason != firewall.ReasonName && e.Reason != firewall.ReasonPort {
			what += " (" + e.Reason + ")"
			if firewall.Why(e.Reason) != "" && !slices.Contains(why, e.Reason) && len(refused) < maxDenials {
				why = append(why, e.Reason)
			}
		}
		if what = printable(what); !slices.Contains(refused, what) && len(refused) < maxDenials {
			refused = append(refused, what)
			if l := printable(e.Suggest); l != "" && !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
	}
	return refused, lines, why
}

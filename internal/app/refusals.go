package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Opening is what opens one refused thing: the line for network.allow, and the
// command that does it in the running guard. Command is empty where the line alone
// helps.
type Opening struct{ Line, Command string }

// OpeningOf reads what an event suggests for a worker, the first of the room where
// it is empty; not ok where no line helps.
func OpeningOf(l events.Line, worker string) (o Opening, ok bool) {
	if l.Suggest == "" || l.Verdict != events.Deny {
		return o, false
	}
	o.Line = Printable(l.Suggest)
	if worker == "" && len(l.Workers) > 0 {
		worker = Printable(l.Workers[0])
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
	if host == "" || worker == "" || Printable(host) != host {
		return o, true // the line alone
	}
	o.Command = allowCommand(host, port, l.Suggest, worker)
	return o, true
}

// Refusal is one thing that was refused, however often and on whichever way it
// was tried.
type Refusal struct {
	Target string // "name:port", the name alone of a look-up
	Name   string // asked for, if it was one
	Reason string // as the guard writes it
	dns    bool   // only its addresses were asked for
	rule   string // that decided, as the guard writes it
	Opening
}

// deniedBy says which deny line it was.
func (x Refusal) deniedBy() string {
	if strings.HasPrefix(x.rule, firewall.LiveLine) {
		return "a live change"
	}
	return x.rule
}

// Refusals gathers what was refused to a worker: a name that was looked up and
// then connected to is one entry.
type Refusals struct {
	Worker string
	List   []Refusal // in order of time

	// A worker can be refused any number of names: none is looked for in the list.
	seen      map[[2]string]bool // target and reason
	connected map[string]bool    // names that a connection was for
	asked     map[string][]int   // names whose addresses alone were asked for: where in the list
}

// RefusalOf reads an event; not ok where it refuses nothing to the worker.
func RefusalOf(l events.Line, worker string) (x Refusal, ok bool) {
	if l.Verdict != events.Deny || !slices.Contains(l.Workers, worker) {
		return x, false
	}
	x = Refusal{Target: EventTarget(l), Name: l.Name, dns: l.Protocol == "dns", Reason: l.Reason, rule: Printable(l.Rule)}
	x.Opening, _ = OpeningOf(l, worker)
	return x, true
}

// Add takes an event.
func (r *Refusals) Add(l events.Line) {
	x, ok := RefusalOf(l, r.Worker)
	if !ok {
		return
	}
	if r.seen == nil {
		r.seen, r.connected, r.asked = map[[2]string]bool{}, map[string]bool{}, map[string][]int{}
	}
	what := [2]string{x.Target, x.Reason}
	if r.seen[what] {
		return
	}
	r.seen[what] = true
	asked := r.asked[x.Name]
	switch {
	case x.Name == "":
	case x.dns && r.connected[x.Name]: // the connection says more
		return
	case x.dns:
		r.asked[x.Name] = append(asked, len(r.List))
	default:
		r.connected[x.Name] = true
		if len(asked) > 0 {
			r.List[asked[0]], r.asked[x.Name] = x, asked[1:]
			return
		}
	}
	r.List = append(r.List, x)
}

// Says reports whether a line about x says what one about y would: the same, or
// the look-up and the connection of one name that one command allows.
func (x Refusal) Says(y Refusal) bool {
	return x.Target == y.Target && x.Reason == y.Reason ||
		y.Name != "" && x.Name == y.Name && x.dns != y.dns && (y.dns || x.Command == y.Command)
}

// Text is a refusal in one line.
func (x Refusal) Text() string {
	why, opens := ReasonText(x.Reason), ""
	switch {
	case x.Command != "":
		opens = "; to allow it: " + x.Command
	case x.Line != "":
		opens = "; to allow it, add to network.allow: - " + x.Line
	}
	switch {
	case x.Reason == firewall.ReasonName:
		why = "not allowed"
	case x.Reason == firewall.ReasonPort:
		why = "not allowed with this port"
	case x.Reason == firewall.ReasonDenied && x.rule != "":
		why = "denied by " + x.deniedBy()
	case opens != "":
		why, _, _ = strings.Cut(why, ";")
	}
	return strings.Join(strings.Fields("refused "+x.Target), " ") + " (" + why + ")" + opens
}

// refusedSince reads what was refused to a worker since a time. The guard writes
// what is new at once, and joins what repeats a line of the last second: only
// where there is such a line, it is asked for its state, before which it writes
// all that it has.
func (r *Running) refusedSince(ctx context.Context, worker string, since time.Time) []Refusal {
	for look := 1; ; look++ {
		found, repeats := Refusals{Worker: worker}, false
		reader := &eventReader{each: func(_ []byte, l events.Line) error {
			if l.Time.Before(since) {
				repeats = repeats || l.Verdict == events.Deny && slices.Contains(l.Workers, worker)
			} else {
				found.Add(l)
			}
			return nil
		}}
		began := time.Now()
		o := engine.LogsOptions{Since: since.Add(-joinTime).Format(time.RFC3339Nano)}
		err := r.readEvents(ctx, o, reader)
		switch {
		case err != nil || ctx.Err() != nil || look == looks || look > 1 && len(found.List) > 0 || !repeats && len(found.List) > 0:
			return found.List // the log is no reason to fail
		case repeats && look == 1:
			<-r.AskGuard(ctx)
			fallthrough
		default:
			// A busy engine takes longer to show a line, as it does to answer.
			time.Sleep(max(onItsWay, time.Since(began)))
		}
	}
}

const (
	// joinTime is how long the guard joins equal events at most.
	joinTime = events.Window * 3 / 2
	// onItsWay is how long a line that the guard has written may take until the
	// engine shows it.
	onItsWay = 50 * time.Millisecond
	// looks are how often the log is read for what may be on its way.
	looks = 3
)

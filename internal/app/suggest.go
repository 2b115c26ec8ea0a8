package app

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/verify"
)

// SuggestRequest says from which events rules are suggested.
type SuggestRequest struct {
	Worker string // only of its room; empty: of all
	Denied bool   // also what was refused because no rule has it
}

// Suggestions is what could be allowed, of what workers asked for.
type Suggestions struct {
	// Since is when the log begins.
	Since time.Time `json:"since,omitzero"`
	// Lost says that it begins long after the workshop: older lines were thrown away,
	// or are an older guard's.
	Lost    bool            `json:"lost,omitempty"`
	Allow   []SuggestedLine `json:"allow"`
	LeftOut LeftOut         `json:"left_out"`
	// InVain are names that were looked up and have no address.
	InVain []string `json:"in_vain,omitempty"`
	// Tried are lines for what `firewall explain` and `verify` alone tried from the worker.
	Tried []string `json:"tried,omitempty"`
	// Refused: for want of a line something was refused, which Denied would have.
	Refused bool `json:"-"`
	// File is the path of the workshop file; empty where it isn't read.
	File string `json:"-"`

	source  *Source
	request SuggestRequest
}

// HowToAsk says how workers come to ask, in a shown file: only those with mode restricted learn.
func (s *Suggestions) HowToAsk(file string) string {
	if w := s.source.Worker(s.request.Worker); w != nil {
		switch w.Container.Network.Mode.V {
		case firewall.None:
			return w.Name + " has no network; to give it one, " + s.source.networkLine(w, file)
		case firewall.Open:
			return w.Name + " reaches every public name (`network: open`)"
		}
	} else if _, learn := learners(s.source.Workshop, nil); len(learn) == 0 {
		return "no worker learns: that needs `network: {mode: restricted}`"
	}
	return "`workshop up --learn` lets workers ask"
}

// LeftOut counts what was asked for and isn't suggested.
type LeftOut struct {
	Covered   int `json:"covered"`   // by a line of the file
	Denied    int `json:"denied"`    // by a deny line of the file
	Elsewhere int `json:"elsewhere"` // by workers whose lists are those of sources
	Nameless  int `json:"nameless"`  // addresses, or names that aren't names
	Other     int `json:"other"`     // refused for another reason than a missing line
}

// SuggestedLine is one line for network.allow.
type SuggestedLine struct {
	Line    string    `json:"line"` // as it is written
	Name    string    `json:"name"`
	Ports   string    `json:"ports"` // that were asked for
	Workers []string  `json:"workers"`
	Count   uint64    `json:"count"`
	First   time.Time `json:"first"`
	Learned bool      `json:"learned"` // it was let through
	Refused bool      `json:"refused"`
	// LookedUp: only the addresses of Name were asked for. Ports are those that the
	// line opens.
	LookedUp bool `json:"looked_up,omitempty"`

	host  firewall.Name
	used  []firewall.PortRange // of Name; of LookedUp those that the line opens
	rules []firewall.Rule      // what it opens: one rule, or those of its preset
	names []string             // of a preset: those that were asked for
}

// Comment says who asked, how often, and when first.
func (l *SuggestedLine) Comment() string {
	often := "once"
	if l.Count > 1 {
		often = strconv.FormatUint(l.Count, 10) + " times"
	}
	did, of := "", ""
	if l.Refused && !l.Learned {
		did = "refused "
	}
	switch {
	case l.LookedUp:
		of = "only looked up: opens 80 and 443; for SSH write " + l.Name + ":" + sshPort + "; "
	case len(l.names) > 0:
		of = WorkersText(l.names) + "; "
	}
	return fmt.Sprintf("%s%s: %s%s, first %s", of, WorkersText(l.Workers), did, often, l.First.Local().Format("2006-01-02 15:04"))
}

// Suggest reads the guard's log and returns the smallest list of rules for what
// workers asked for; asked as in [Running.Look].
func (env *Env) Suggest(ctx context.Context, o SuggestRequest, asked bool) (*Suggestions, error) {
	s, err := env.Load(ctx)
	if err != nil {
		return nil, err
	}
	if o.Worker != "" {
		if err := s.CheckWorkers([]string{o.Worker}); err != nil {
			return nil, err
		}
	}
	t, err := env.Find(ctx)
	if err != nil {
		return nil, err
	}
	e, seen, err := env.ObserveGuard(ctx, t, o.Worker, asked)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	requests := newDialRequests(o)
	r := &eventReader{stamped: true, each: requests.add}
	if err := e.readEvents(ctx, engine.LogsOptions{}, r); err != nil {
		return nil, EngineError(err)
	}
	result := requests.suggest(s)
	result.Since, result.File = r.first, t.File
	result.Lost = beginsLate(seen, r.first)
	return result, nil
}

// logBegins is how long after its first container a project's guard may take to write
// the first line of its log.
const logBegins = time.Minute

// beginsLate reports whether a guard's log begins long after what runs.
func beginsLate(seen engine.Observed, first time.Time) bool {
	return slices.ContainsFunc(seen.Containers, func(c engine.Container) bool {
		return c.State == "running" && !c.Started.IsZero() && first.Sub(c.Started) > logBegins
	})
}

// maxWritten lines are what a person can be expected to have read.
const maxWritten = 100

// dialRequests gathers from the guard's events what workers asked for. Names are
// what untrusted code wrote: only what is a [firewall.Name] counts.
type dialRequests struct {
	request SuggestRequest
	names   map[firewall.Name]*requestedName
	out     LeftOut
	refused bool            // Suggestions.Refused
	seen    map[string]bool // what is left out, each once
	tried   *dialRequests   // what `firewall explain` tried at the time
	// elsewhere are workers whose lists are those of sources.
	elsewhere map[string]bool
}

func newDialRequests(o SuggestRequest) *dialRequests {
	return &dialRequests{request: o, names: map[firewall.Name]*requestedName{}}
}

// requestedName is one name with the ports that were asked for.
type requestedName struct {
	ports  map[uint16]*dialRequest
	lookUp *dialRequest // its addresses were asked for, and refused
	inVain *dialRequest // its addresses were asked for, and there are none
}

// dialRequest is how often something was asked for, and by whom.
type dialRequest struct {
	workers          []string
	count            uint64
	first            time.Time
	learned, refused bool
}

func (x *dialRequest) add(l events.Line) *dialRequest {
	if x == nil {
		x = &dialRequest{first: l.Time}
	}
	for _, w := range l.Workers {
		if ValidName(w) && !slices.Contains(x.workers, w) {
			x.workers = append(x.workers, w)
		}
	}
	if l.Time.Before(x.first) {
		x.first = l.Time
	}
	x.count += max(1, l.Count)
	x.learned = x.learned || l.Verdict == events.Allow
	x.refused = x.refused || l.Verdict == events.Deny
	return x
}

// add takes one event.
func (q *dialRequests) add(_ []byte, l events.Line) error {
	if q.request.Worker != "" && !slices.Contains(l.Workers, q.request.Worker) {
		return nil
	}
	learned := l.Verdict == events.Allow && l.Reason == firewall.ReasonLearned
	refused := q.request.Denied && l.Verdict == events.Deny
	inVain := l.Verdict == events.Note && l.Reason == events.ReasonUnresolved && l.Rule == ""
	q.refused = q.refused || l.Verdict == events.Deny && lacksLine(l.Reason) && !l.Explained
	if !learned && !refused && !inVain {
		return nil
	}
	if l.Explained {
		if q.tried == nil {
			q.tried = newDialRequests(q.request)
		}
		l.Explained = false
		return q.tried.add(nil, l)
	}
	name, err := firewall.ParseName(l.Name)
	switch {
	case inVain && err != nil:
		return nil
	case inVain:
		n := q.named(name)
		n.inVain = n.inVain.add(l)
		return nil
	case refused && !lacksLine(l.Reason):
		q.leave(&q.out.Other, l)
		return nil
	case err != nil || l.Port == 0 || refused && l.Suggest == "":
		q.leave(&q.out.Nameless, l)
		return nil
	}
	n := q.named(name)
	if l.Kind == events.DNS {
		n.lookUp = n.lookUp.add(l)
	} else {
		n.ports[l.Port] = n.ports[l.Port].add(l)
	}
	return nil
}

// lacksLine reports whether something was refused because no line has it.
func lacksLine(reason string) bool {
	return reason == firewall.ReasonName || reason == firewall.ReasonPort
}

// named is what was asked for of a name.
func (q *dialRequests) named(name firewall.Name) *requestedName {
	if q.names[name] == nil {
		q.names[name] = &requestedName{ports: map[uint16]*dialRequest{}}
	}
	return q.names[name]
}

// leave counts what is left out, each thing once.
func (q *dialRequests) leave(n *int, l events.Line) {
	key := l.Name + "\n" + l.Address + "\n" + l.Reason
	if !q.seen[key] {
		if q.seen == nil {
			q.seen = map[string]bool{}
		}
		q.seen[key] = true
		*n++
	}
}

// suggest makes the lines, with presets in the place of the names that they have.
func (q *dialRequests) suggest(s *Source) *Suggestions {
	out := q.lines(s)
	out.usePresets()
	out.LeftOut, out.Refused = q.out, q.refused
	if q.tried == nil {
		return out
	}
	var opened []firewall.Rule // by what is suggested
	for _, l := range out.Allow {
		opened = append(opened, l.rules...)
	}
	tried := q.tried.lines(s)
	tried.Allow = slices.DeleteFunc(tried.Allow, func(l SuggestedLine) bool {
		_, asked := q.names[l.host]
		return asked || verify.IsTry(l.Name) || l.coveredBy(opened)
	})
	tried.usePresets()
	for _, l := range tried.Allow {
		out.Tried = append(out.Tried, l.Line)
	}
	return out
}

// lines makes one line for 80 and 443 of a name, and one for each other port. A name of
// which only the addresses were asked for would have been connected to on some port:
// most likely 80 or 443.
func (q *dialRequests) lines(s *Source) *Suggestions {
	out := &Suggestions{Allow: []SuggestedLine{}, source: s, request: q.request}
	q.elsewhere = s.listsElsewhere()
	for name, n := range q.names {
		var web *dialRequest
		var ports []firewall.PortRange
		for port, x := range n.ports {
			if port == 80 || port == 443 {
				web = web.join(x)
				ports = append(ports, firewall.PortRange{First: port, Last: port})
			} else {
				q.line(out, s, name, []firewall.PortRange{{First: port, Last: port}}, x)
			}
		}
		if len(n.ports) == 0 {
			web, ports = n.lookUp, firewall.DefaultAllowPorts()
		}
		if web != nil {
			q.line(out, s, name, firewall.NormalizePorts(ports), web)
		}
		if len(n.ports) == 0 && n.lookUp == nil && n.inVain != nil {
			out.InVain = append(out.InVain, name.String())
		}
	}
	slices.Sort(out.InVain)
	return out
}

// opensName reports whether lines open some port of a name.
func opensName(lines []firewall.Rule, name firewall.Name) bool {
	return slices.ContainsFunc(lines, func(r firewall.Rule) bool { return r.Host.Match(name) })
}

// coveredBy reports whether lines have all that rules open.
func coveredBy(rules, lines []firewall.Rule) bool {
	return !slices.ContainsFunc(rules, func(r firewall.Rule) bool { return !firewall.CoveredBy(r, filled(lines)) })
}

// join is both together.
func (x *dialRequest) join(y *dialRequest) *dialRequest {
	if x == nil {
		return y
	}
	z := *x
	z.workers = slices.Clone(x.workers)
	for _, w := range y.workers {
		if !slices.Contains(z.workers, w) {
			z.workers = append(z.workers, w)
		}
	}
	if y.first.Before(z.first) {
		z.first = y.first
	}
	z.count += y.count
	z.learned, z.refused = z.learned || y.learned, z.refused || y.refused
	return &z
}

// line adds the line for ports of a name, unless the file decides about them
// for all workers that asked.
func (q *dialRequests) line(out *Suggestions, s *Source, name firewall.Name, ports []firewall.PortRange, x *dialRequest) {
	host, err := firewall.ParseHostPattern(name.String())
	if err != nil {
		q.out.Nameless++
		return
	}
	rule := firewall.Rule{Host: host, Ports: ports}
	lookedUp := x == q.names[name].lookUp
	known, covered, denied, elsewhere := 0, 0, 0, 0
	for _, worker := range x.workers {
		w := s.Worker(worker)
		if w == nil {
			continue
		}
		known++
		network := &w.Container.Network
		switch {
		case firewall.CoveredBy(rule, filled(network.Deny)):
			denied++
		case network.Mode.V == firewall.Open || firewall.CoveredBy(rule, filled(network.Allow)) || lookedUp && opensName(network.Allow, name):
			covered++
		case q.elsewhere[worker]:
			elsewhere++
		}
	}
	switch {
	case known > 0 && denied == known:
		q.out.Denied++
		return
	case known > 0 && denied+covered == known:
		q.out.Covered++
		return
	case known > 0 && denied+covered+elsewhere == known:
		q.out.Elsewhere++
		return
	}
	slices.Sort(x.workers)
	out.Allow = append(out.Allow, SuggestedLine{
		host: name, used: ports,
		Line: RuleLine(rule, false), Name: name.String(), Ports: firewall.FormatPorts(ports), Workers: x.workers,
		Count: x.count, First: x.first, Learned: x.learned, Refused: x.refused, LookedUp: lookedUp, rules: []firewall.Rule{rule},
	})
}

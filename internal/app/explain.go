package app

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
)

// ExplainRequest is a question for what becomes of a worker's connection.
type ExplainRequest struct {
	Target string // HOST[:PORT]; without a port it is 443, and 80 where that differs
	Worker string // empty: any, and where they differ one for each answer
	// NoProbe: nothing is tried, and the guard looks nothing up.
	NoProbe bool
}

// Explained is the answer.
type Explained struct {
	Connections []*Explanation // one for each port, and each answer where workers differ
	View        *PolicyView    // the policy by which they were decided
}

// Explanation is what becomes of one connection.
type Explanation struct {
	Host    string        `json:"host"`
	Port    uint16        `json:"port"`
	Worker  string        `json:"worker"`
	Workers []string      `json:"workers"` // of the room
	Room    string        `json:"room,omitempty"`
	Mode    firewall.Mode `json:"mode"`
	Allowed bool          `json:"allowed"`
	Reason  string        `json:"reason"`
	Why     string        `json:"why"`
	// Line is what decides; nil where no line does.
	Line *ExplainedLine `json:"line,omitempty"`
	// Also is a live change that says the same as the file's line.
	Also *ExplainedLine `json:"also,omitempty"`
	// Near are lines that have the host, but not the port.
	Near []ExplainedLine `json:"near,omitempty"`
	// Suggest is the line that would allow it, Command what does it at once.
	Suggest string `json:"suggest,omitempty"`
	Command string `json:"command,omitempty"`
	// Enforced says in order what a connection meets.
	Enforced []string         `json:"enforced"`
	Others   []ExplainedOther `json:"others"`
	// Now is what is seen; nil where nothing was tried.
	Now *ProbedNow `json:"now,omitempty"`
	// Differences between what is expected and what is seen.
	Differences []string `json:"differences,omitempty"`

	room     *firewall.RoomPolicy // nil: no network
	decision firewall.Decision    // by the policy alone
	list     fileList             // for the line that would allow it
}

// FileLine says what to write where so that the file allows the connection; empty where
// no line does.
func (e *Explanation) FileLine() string {
	switch {
	case e.Suggest == "":
		return ""
	case e.list.elsewhere != "":
		return e.list.elsewhere
	}
	return "- " + e.Suggest + " below " + e.list.String()
}

// ExplainedLine is a line, of the file or live.
type ExplainedLine struct {
	PolicyRule
	Deny    bool   `json:"deny,omitempty"`
	Text    string `json:"text"` // as it is written
	Live    bool   `json:"live,omitempty"`
	Version int    `json:"preset_version,omitempty"`
	Purpose string `json:"purpose,omitempty"` // of the host in its preset
}

// ExplainedOther is what becomes of the same connection of other workers.
type ExplainedOther struct {
	Workers []string `json:"workers"`
	Allowed bool     `json:"allowed"`
	Reason  string   `json:"reason"`
	Line    string   `json:"line,omitempty"`
}

// Endpoint is HOST:PORT.
func (e *Explanation) Endpoint() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// Explain decides by the workshop file and what is live in the guard. If the workshop
// is up, it asks the guard too, and tries the connection in the worker.
func (env *Env) Explain(ctx context.Context, o ExplainRequest) (*Explained, error) {
	x, f := parseEndpoint(o.Target)
	if f != nil {
		return nil, f
	}
	v, err := env.viewPolicy(ctx, o.Worker)
	if err != nil {
		return nil, err
	}
	defer v.close()
	ports := []uint16{x.port}
	if x.port == 0 {
		ports = []uint16{443, 80}
	}
	out := &Explained{View: v}
	workers := []string{o.Worker}
	if o.Worker == "" {
		workers = v.differing(x, ports)
	}
	for _, worker := range workers {
		var first *Explanation
		for _, port := range ports {
			e := v.explain(x, port, worker, len(workers) > 1)
			if first != nil && sameDecision(e.decision, first.decision) {
				break
			}
			first, out.Connections = e, append(out.Connections, e)
		}
	}
	for _, e := range out.Connections {
		env.tryOut(ctx, v, x, e, o)
	}
	return out, nil
}

// endpoint is what a worker connects to: a name or an address, and a port; 0
// where none was given.
type endpoint struct {
	name firewall.Name
	addr netip.Addr
	port uint16
}

// host is the name or address alone.
func (x endpoint) host() string {
	if x.addr.IsValid() {
		return x.addr.String()
	}
	return x.name.String()
}

// parseEndpoint reads HOST[:PORT].
func parseEndpoint(text string) (x endpoint, f *Failure) {
	host, ports, hasPort := splitPort(text)
	if hasPort {
		list, err := firewall.ParsePorts(ports)
		if err == nil && (len(list) != 1 || list[0].First != list[0].Last) {
			err = errors.New("explain is about one port")
		}
		if err != nil {
			return x, Fail(CodeUsage, "%s: %w", quoted(text), err)
		}
		x.port = list[0].First
	}
	if p, ok := addressRange(host); ok {
		if strings.Contains(host, "/") {
			return x, Fail(CodeUsage, "%s: explain is about one address, not about a range", quoted(text))
		}
		x.addr = p.Addr().Unmap()
		return x, nil
	}
	p, err := firewall.ParseHostPattern(host)
	name, exact := p.Name()
	switch {
	case err != nil && p.IsZero():
		f = Fail(CodeUsage, "%w", err)
		if he, ok := errors.AsType[*firewall.HostError](err); ok && he.Hint != "" {
			f.Hint("%s", he.Hint)
		}
		return x, f
	case !exact:
		return x, Fail(CodeUsage, "%s: explain is about one name, not about a wildcard", quoted(text))
	}
	x.name = name
	return x, nil
}

// own reports whether it is the loopback of the worker's own room, which no rule and
// no guard is for. To connect to the unspecified address is to connect to it.
func (x endpoint) own() bool {
	return firewall.IsOwn(x.name) || x.addr.IsLoopback() || x.addr.IsUnspecified()
}

// matches reports whether a rule has the name or address.
func (x endpoint) matches(r firewall.Rule) bool {
	return r.Host.Match(x.name) || r.CIDR.IsValid() && x.addr.IsValid() && r.CIDR.Contains(x.addr)
}

// reasonOwn is the reason of what is the room's own.
const reasonOwn = "own-loopback"

// decide says what a room's policy says; a room that isn't there has none.
func (x endpoint) decide(r *firewall.RoomPolicy, port uint16) firewall.Decision {
	if x.own() {
		return firewall.Decision{Allowed: true, Reason: reasonOwn}
	}
	if r == nil {
		return firewall.Decision{Reason: firewall.ReasonNone}
	}
	m := r.Compile()
	if x.addr.IsValid() {
		return m.Addr(x.addr, port)
	}
	return m.Name(x.name, port)
}

// sameDecision reports whether two rooms say the same for the same reason.
func sameDecision(x, y firewall.Decision) bool {
	line := func(d firewall.Decision) string {
		if d.Rule == nil {
			return ""
		}
		return d.Rule.Target() + d.Rule.Line
	}
	return x.Allowed == y.Allowed && x.Reason == y.Reason && line(x) == line(y)
}

// explainGroup are workers of which one decision is made.
type explainGroup struct {
	workers []string
	room    *firewall.RoomPolicy // nil: no network
}

// groups are the workers of each room, then those without a network.
func (v *PolicyView) groups() (out []explainGroup) {
	for i := range v.Effective {
		out = append(out, explainGroup{v.Effective[i].Workers, &v.Effective[i]})
	}
	if len(v.None) > 0 {
		out = append(out, explainGroup{v.None, nil})
	}
	return out
}

// differing returns a worker for each different answer: one where all have the same.
func (v *PolicyView) differing(x endpoint, ports []uint16) (workers []string) {
	var known []explainGroup
	for _, g := range v.groups() {
		same := func(k explainGroup) bool {
			return !slices.ContainsFunc(ports, func(port uint16) bool {
				return !sameDecision(x.decide(k.room, port), x.decide(g.room, port))
			})
		}
		if !slices.ContainsFunc(known, same) {
			known, workers = append(known, g), append(workers, g.workers[0])
		}
	}
	return workers
}

// explain decides for one worker. differing: workers with another answer have
// explanations of their own, and aren't listed.
func (v *PolicyView) explain(x endpoint, port uint16, worker string, differing bool) *Explanation {
	groups := v.groups()
	mine := slices.IndexFunc(groups, func(g explainGroup) bool { return slices.Contains(g.workers, worker) })
	g := groups[mine]
	decision := x.decide(g.room, port)
	e := &Explanation{
		Host: x.host(), Port: port, Worker: worker, Workers: g.workers, Allowed: decision.Allowed, Reason: decision.Reason, Why: ReasonText(decision.Reason, x.host(), ""),
		Suggest: decision.Suggest, Others: []ExplainedOther{}, room: g.room, decision: decision, list: v.c.listFor(worker),
	}
	if g.room != nil {
		e.Room, e.Mode = g.room.Room, g.room.Mode
	}
	if decision.Rule != nil {
		deny := decision.Reason == firewall.ReasonDenied
		e.Line = v.line(*decision.Rule, deny, x)
		// What is live is added to the file's lines, and may repeat one.
		if d := x.decide(v.fileRoom(e.Room), port); e.Line.Live && d.Rule != nil && d.Reason == decision.Reason {
			e.Also, e.Line = e.Line, v.line(*d.Rule, deny, x)
		}
		if e.Why = ReasonText(decision.Reason, e.Host, e.Line.PolicyRule.Line); deny && e.Line.Live {
			if e.Command = v.lift(g.room.Room, worker, x, port); e.Command != "" {
				e.Why, _, _ = strings.Cut(e.Why, ";")
			}
		}
	} else if decision.Reason == firewall.ReasonNone || decision.Reason == firewall.ReasonOpen {
		e.Line = v.modeLine(worker)
	}
	if decision.Reason == firewall.ReasonLearned {
		e.Line = &ExplainedLine{Live: true, Text: "`workshop up --learn`, " + EndText(v.State.Learning[g.room.Room], false)}
	}
	if decision.Reason == firewall.ReasonPort {
		e.Near = v.near(g.room, x)
	}
	if !e.Allowed && e.Suggest != "" && g.room != nil {
		e.Command = allowCommand(x.host(), port, e.Suggest, roomFlag(g.room.Room, g.workers, worker))
		e.Suggest = presetLine(e.Suggest, x.name, onePort(port))
	}
	e.Enforced = enforced(g.room, x, port, decision, v.c.hasOwnKernel(worker))
	for i, o := range groups {
		d := x.decide(o.room, port)
		if i == mine || differing && !sameDecision(d, decision) {
			continue
		}
		other := ExplainedOther{Workers: o.workers, Allowed: d.Allowed, Reason: d.Reason}
		if d.Rule != nil {
			other.Line = d.Rule.Line
		}
		e.Others = append(e.Others, other)
	}
	return e
}

// lift is the command that ends the live denies of a connection; empty where that
// takes more than to allow its host.
func (v *PolicyView) lift(room, worker string, x endpoint, port uint16) string {
	command := allowCommand(x.host(), port, "", worker)
	if _, f := parseRule(net.JoinHostPort(x.host(), strconv.Itoa(int(port))), false); f != nil {
		return ""
	}
	for _, l := range v.live() {
		if !l.Deny || l.Room != "" && l.Room != room || !firewall.HasPort(l.Rule.Ports, port) || !x.matches(l.Rule) {
			continue
		}
		if l.Rule.Host.IsWildcard() || l.Rule.CIDR.IsValid() && !l.Rule.CIDR.IsSingleIP() {
			return ""
		}
		if l.Room == "" { // a deny for all ends with an allow for all
			command = allowCommand(x.host(), port, "", "")
		}
	}
	return command
}

// fileRoom is a room as the file has it; nil for none.
func (v *PolicyView) fileRoom(name string) *firewall.RoomPolicy {
	if i := slices.IndexFunc(v.file, func(r firewall.RoomPolicy) bool { return r.Room == name }); i >= 0 {
		return &v.file[i]
	}
	return nil
}

// line describes the line that decides.
func (v *PolicyView) line(r firewall.Rule, deny bool, x endpoint) *ExplainedLine {
	out := &ExplainedLine{PolicyRule: NewPolicyRule(r), Deny: deny}
	for _, l := range v.live() {
		if l.Deny == deny && r.Line == l.Rule.Line && r.Target() == l.Rule.Target() && slices.Equal(r.Ports, l.Rule.Ports) {
			out.Live, out.Text = true, liveText(l)
			return out
		}
	}
	out.Text = v.textAt(r.Source.Range)
	p, ok := presets.Get(r.Preset)
	if r.Preset == "" || !ok {
		return out
	}
	out.Version = p.Version
	for _, h := range p.Rules {
		if h.Host == r.Host && h.Host.Match(x.name) {
			out.Purpose = h.Purpose
		}
	}
	return out
}

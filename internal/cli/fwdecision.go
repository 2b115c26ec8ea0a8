package cli

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/workshop"
)

// fwExplanation is what becomes of one connection.
type fwExplanation struct {
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
	Line *fwLine `json:"line,omitempty"`
	// Near are lines that have the host, but not the port.
	Near []fwLine `json:"near,omitempty"`
	// Suggest is the line that would allow it, Command what does it at once.
	Suggest string `json:"suggest,omitempty"`
	Command string `json:"command,omitempty"`
	// Enforced says in order what a connection meets.
	Enforced []string  `json:"enforced"`
	Others   []fwOther `json:"others"`
	// Now is what is seen; nil where nothing was tried.
	Now *fwNow `json:"now,omitempty"`
	// Differences between what is expected and what is seen.
	Differences []string `json:"differences,omitempty"`

	room *firewall.RoomPolicy // nil: no network
}

// fwLine is a line, of the file or live.
type fwLine struct {
	fwRule
	Deny    bool   `json:"deny,omitempty"`
	Text    string `json:"text"` // as it is written
	Live    bool   `json:"live,omitempty"`
	Version int    `json:"preset_version,omitempty"`
	Purpose string `json:"purpose,omitempty"` // of the host in its preset
}

// fwOther is what becomes of the same connection of other workers.
type fwOther struct {
	Workers []string `json:"workers"`
	Allowed bool     `json:"allowed"`
	Reason  string   `json:"reason"`
	Line    string   `json:"line,omitempty"`
}

// target is HOST:PORT.
func (e *fwExplanation) target() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// sameAs tells whether nothing but the port differs.
func (e *fwExplanation) sameAs(o *fwExplanation) bool {
	line := func(x *fwExplanation) string {
		if x.Line == nil {
			return ""
		}
		return x.Line.Target + x.Line.fwRule.Line
	}
	return e.Allowed == o.Allowed && e.Reason == o.Reason && line(e) == line(o)
}

// sameDecision tells whether two rooms say the same for the same reason.
func sameDecision(x, y firewall.Decision) bool {
	line := func(d firewall.Decision) string {
		if d.Rule == nil {
			return ""
		}
		return d.Rule.Target() + d.Rule.Line
	}
	return x.Allowed == y.Allowed && x.Reason == y.Reason && line(x) == line(y)
}

// explain decides for one worker; for any where the name is empty and all
// workers have the same.
func (v *fwView) explain(x endpoint, port uint16, worker string) (*fwExplanation, error) {
	type group struct {
		workers []string
		room    *firewall.RoomPolicy
		d       firewall.Decision
	}
	var groups []group
	if len(v.none) > 0 {
		groups = append(groups, group{v.none, nil, x.decide(nil, port)})
	}
	for i := range v.effective {
		r := &v.effective[i]
		groups = append(groups, group{r.Workers, r, x.decide(r, port)})
	}
	mine := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.workers, worker) })
	if worker == "" {
		mine = len(groups) - 1 // one with a room, if there is one
		for _, g := range groups {
			if !sameDecision(g.d, groups[mine].d) {
				f := app.Fail(app.CodeUsage, "workers differ about %s: name one with --worker", net.JoinHostPort(x.host(), strconv.Itoa(int(port))))
				for _, g := range groups {
					f.Hint("%s: %s", app.WorkersText(g.workers), decisionText(g.d))
				}
				return nil, f
			}
		}
		worker = groups[mine].workers[0]
	}
	g := groups[mine]
	e := &fwExplanation{
		Host: x.host(), Port: port, Worker: worker, Workers: g.workers, Allowed: g.d.Allowed, Reason: g.d.Reason, Why: reasonText(g.d.Reason),
		Suggest: g.d.Suggest, Others: []fwOther{}, room: g.room,
	}
	if g.room != nil {
		e.Room, e.Mode = g.room.Room, g.room.Mode
	}
	if g.d.Rule != nil {
		e.Line = v.line(*g.d.Rule, g.d.Reason == firewall.ReasonDenied, x)
	} else if g.d.Reason == firewall.ReasonNone || g.d.Reason == firewall.ReasonOpen {
		e.Line = v.modeLine(worker)
	}
	if g.d.Reason == firewall.ReasonLearned {
		e.Line = &fwLine{Live: true, Text: "`workshop up --learn`, " + endText(v.state.Learning[g.room.Room], false)}
	}
	if g.d.Reason == firewall.ReasonPort {
		e.Near = v.near(g.room, x)
	}
	if !e.Allowed && e.Suggest != "" && g.room != nil {
		e.Command = allowCommand(x.host(), port, e.Suggest, worker)
	}
	e.Enforced = enforced(g.room, x, port, g.d)
	for i, o := range groups {
		if i != mine {
			other := fwOther{Workers: o.workers, Allowed: o.d.Allowed, Reason: o.d.Reason}
			if o.d.Rule != nil {
				other.Line = o.d.Rule.Line
			}
			e.Others = append(e.Others, other)
		}
	}
	return e, nil
}

// decisionText is "allowed (a line …, workshop.yaml:9)".
func decisionText(d firewall.Decision) string {
	word, line := "refused", ""
	if d.Allowed {
		word = "allowed"
	}
	if d.Rule != nil {
		line = d.Rule.Line + ", "
	}
	return fmt.Sprintf("%s (%s%s)", word, line, reasonText(d.Reason))
}

// line describes the line that decides.
func (v *fwView) line(r firewall.Rule, deny bool, x endpoint) *fwLine {
	out := &fwLine{fwRule: fwRules([]firewall.Rule{r})[0], Deny: deny}
	for _, l := range v.live("") {
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

// modeLine is where a worker's mode is written.
func (v *fwView) modeLine(worker string) *fwLine {
	w := v.c.Worker(worker)
	if w == nil {
		return nil
	}
	n := &w.Container.Network
	at := n.Mode.Source.Range
	if at.Start.Line == 0 {
		at = n.Source.Range
	}
	if at.Start.Line == 0 {
		return &fwLine{Text: "network: " + n.Mode.V.String() + " (the default)"}
	}
	return &fwLine{fwRule: fwRule{Line: at.Filename + ":" + strconv.Itoa(at.Start.Line)}, Text: v.textAt(at)}
}

// near are the allow lines that have the host with other ports.
func (v *fwView) near(r *firewall.RoomPolicy, x endpoint) []fwLine {
	var out []fwLine
	for _, rule := range r.Allow {
		if rule.Host.Match(x.name) || rule.CIDR.IsValid() && x.addr.IsValid() && rule.CIDR.Contains(x.addr) {
			out = append(out, *v.line(rule, false, x))
		}
	}
	return out
}

// textAt is a line of a file of the workshop, as it is written.
func (v *fwView) textAt(at diag.Range) string {
	data, err := boundedfile.ReadFS(app.ProjectDir(v.c.Dir), at.Filename, workshop.MaxFileSize)
	if err != nil {
		return ""
	}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n == at.Start.Line {
			return cutEnd(app.Printable(strings.Join(strings.Fields(string(line)), " ")), 200)
		}
	}
	return ""
}

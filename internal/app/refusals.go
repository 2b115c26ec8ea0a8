package app

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Opening is what opens one refused thing: the line for network.allow, and the
// command that does it in the running guard. Command is empty where the line alone
// helps.
type Opening struct {
	Line, Command string
	worker        string // that the command names
}

// fileLine is the line to write into the file: that of a preset which has the name
// with the port.
func (x Refusal) fileLine() string {
	name, err := firewall.ParseName(x.Name)
	if err != nil || x.dns { // a preset may lack the port that comes next
		return x.Line
	}
	return presetLine(x.Line, name, onePort(x.port))
}

// AgainstFile marks the refusals to a worker that the workshop file has a line for by
// now, which the guard wasn't given yet, and has where the lines for the others go.
func (env *Env) AgainstFile(ctx context.Context, t ProjectRef, worker string, list []Refusal) []Refusal {
	if len(list) == 0 {
		return list
	}
	if t.run != nil {
		return t.forRun(list)
	}
	file, p := env.saved(ctx, t)
	if p == nil {
		return list
	}
	room := policyOf(p, worker)
	if room == nil {
		return list
	}
	to := file.listFor(worker)
	m, out := room.Compile(), slices.Clone(list)
	for i := range out {
		x := &out[i]
		x.list = to
		switch {
		case !x.allowedBy(m):
		case room.Mode == firewall.Open && lacksLine(x.Reason): // the mode is new, too
			x.saved = "workshop up"
		default:
			x.saved = "workshop firewall reload"
		}
	}
	return out
}

// policyOf is the policy of a worker's room; nil where it has none.
func policyOf(p *firewall.Policy, worker string) *firewall.RoomPolicy {
	if i := slices.IndexFunc(p.Rooms, func(r firewall.RoomPolicy) bool { return slices.Contains(r.Workers, worker) }); i >= 0 {
		return &p.Rooms[i]
	}
	return nil
}

// allowedBy reports whether rules allow what others refused for want of a line, or
// by a line of the file.
func (x Refusal) allowedBy(m *firewall.Matcher) bool {
	switch {
	case x.Reason == firewall.ReasonDenied && strings.HasPrefix(x.rule, firewall.LiveLine):
		return false
	case x.Reason != firewall.ReasonName && x.Reason != firewall.ReasonPort && x.Reason != firewall.ReasonDenied:
		return false
	}
	name, err := firewall.ParseName(x.Name)
	switch {
	case err == nil && x.dns:
		return m.Resolvable(name).Allowed
	case err == nil:
		return m.Name(name, x.port).Allowed
	}
	addr, err := netip.ParseAddr(x.address)
	return err == nil && m.Addr(addr, x.port).Allowed
}

// OpeningOf reads what an event suggests for a worker, the first of the room where
// it is empty; not ok where no line helps.
func OpeningOf(l events.Line, worker string) (o Opening, ok bool) {
	if l.Suggest == "" || l.Verdict != events.Deny || l.Explained {
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
	if strings.HasPrefix(l.Suggest, "{cidr:") { // what was dialled may be another one
		host = suggestedAddress(l.Suggest)
	}
	if l.Protocol == "dns" {
		port = 0
	}
	if host == "" || worker == "" || Printable(host) != host {
		return o, true // the line alone
	}
	o.worker = roomFlag(l.Room, l.Workers, worker)
	o.Command = allowCommand(host, port, l.Suggest, o.worker)
	return o, true
}

// suggestedAddress is the address that a suggested line opens; empty for another line.
func suggestedAddress(line string) string {
	rest, _ := strings.CutPrefix(line, "{cidr:")
	text, _, _ := strings.Cut(strings.TrimSuffix(rest, "}"), ",")
	p, err := netip.ParsePrefix(strings.Trim(text, ` "`))
	if err != nil || !p.IsSingleIP() {
		return ""
	}
	return p.Addr().String()
}

// Refusal is one thing that was refused, however often and on whichever way it
// was tried.
type Refusal struct {
	Target string // "name:port", the name alone of a look-up
	Name   string // asked for, if it was one
	Reason string // as the guard writes it
	dns    bool   // only its addresses were asked for

	port    uint16
	address string // that was dialled, if it is known
	saved   string // what gives the guard the file, which allows it: see [Env.AgainstFile]

	rule string   // that decided, as the guard writes it
	list fileList // for its line
	Opening
}

// onPort is a look-up with the port that its program would have connected to.
func (x Refusal) onPort(port uint16) Refusal {
	if !x.dns || x.Line != x.Name || x.Command == "" {
		return x
	}
	x.dns, x.port = false, port
	x.Target = net.JoinHostPort(x.Target, strconv.Itoa(int(port)))
	x.Line += ":" + strconv.Itoa(int(port))
	x.Command = allowCommand(x.Name, port, x.Line, x.worker)
	return x
}

// sshPort is where ssh connects to unless it is told otherwise.
const sshPort = "22"

// Seen is seen while the program runs: what it showed serves once, as the next
// look-up of the name may be another program's.
func (s *Signs) Seen(list []Refusal) []Refusal {
	out := s.seen(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = slices.DeleteFunc(s.asked, func(asked askedName) bool {
		return slices.ContainsFunc(out, func(x Refusal) bool { return x.Name == asked.name })
	})
	return out
}

// seen adds to look-ups the port that the output of their program shows.
func (s *Signs) seen(list []Refusal) []Refusal {
	out := slices.Clone(list)
	for i, x := range out {
		if port := s.portOf(x.Name); x.dns && port != 0 {
			out[i] = x.onPort(port)
		}
	}
	return out
}

// shortWhy says a reason in a few words; empty for that of a missing line.
func (x Refusal) shortWhy() string {
	why, _, _ := strings.Cut(ReasonText(x.Reason, x.Name, x.rule), ";")
	switch {
	case x.Reason == firewall.ReasonName:
		return ""
	case x.Reason == firewall.ReasonPort:
		return "not allowed with this port"
	case x.Reason == firewall.ReasonDenied && x.rule != "":
		return "denied by " + LineText(x.rule)
	}
	return why
}

// toldRefused is what a model is told of refusals; empty for none.
func toldRefused(list []Refusal) string {
	var targets []string
	for _, x := range list[:min(len(list), maxDenials)] {
		what := x.Target
		if !x.named() {
			what = "a request without a valid name" // a worker could write a sentence there
		}
		x.Reason = firewall.ToldReason(x.Reason)
		if why := x.shortWhy(); why != "" {
			what += " (" + why + ")"
		}
		targets = appendNew(targets, what)
	}
	if more := len(list) - maxDenials; more > 0 {
		targets = append(targets, fmt.Sprintf("%d more", more))
	}
	switch len(targets) {
	case 0:
		return ""
	case 1:
		return "During this call the guard refused " + targets[0] + " for this room. It is not an error of the server: do not retry, tell the person."
	}
	return "During this call the guard refused " + WorkersText(targets) + " for this room. These are not errors of the servers: do not retry, tell the person."
}

// named reports whether the target is a name or an address.
func (x Refusal) named() bool {
	if x.Name == "" {
		return x.Target != "" // an address: the guard writes it
	}
	_, err := firewall.ParseName(x.Name)
	_, notAddress := netip.ParseAddr(x.Name) // that a proxy was asked for
	return err == nil || notAddress == nil
}

// LineText names a line as the guard has it: by its place in the file, or as a live
// change.
func LineText(line string) string {
	if strings.HasPrefix(line, firewall.LiveLine) {
		return "a live change"
	}
	return Printable(line)
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

// RefusalOf reads an event; not ok where it refuses nothing to the worker, or what
// `firewall explain` tries.
func RefusalOf(l events.Line, worker string) (x Refusal, ok bool) {
	if l.Verdict != events.Deny || l.Explained || !slices.Contains(l.Workers, worker) {
		return x, false
	}
	x = Refusal{Target: EventTarget(l), Name: l.Name, dns: l.Protocol == "dns", Reason: l.Reason, rule: Printable(l.Rule), port: l.Port, address: l.Address}
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

// opens is the same for refusals that one command ends: the ports and the look-up of a
// host.
func (x Refusal) opens() string {
	if x.saved != "" || x.Command == "" {
		return x.Text()
	}
	return x.Name + " " + x.Command
}

// Text is a refusal in one line.
func (x Refusal) Text() string {
	why, opens := x.shortWhy(), ""
	switch {
	case x.saved != "":
		opens = "; the file allows it by now: `" + x.saved + "`"
	case x.Command != "":
		opens = "; to allow it: `" + x.Command + "`"
	case x.Line != "" && x.list.elsewhere != "":
		opens = "; " + x.list.elsewhere
	case x.Line != "":
		opens = "; to allow it, add to network.allow: - " + x.Line
	}
	switch {
	case why == "":
		why = "not allowed"
	case opens == "" && x.Reason != firewall.ReasonDenied:
		why = ReasonText(x.Reason, x.Name, x.rule)
	}
	return strings.Join(strings.Fields("refused "+x.Target), " ") + " (" + why + ")" + opens
}

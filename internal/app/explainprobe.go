package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// ProbedNow is what is seen of a connection now.
type ProbedNow struct {
	// Guard is what the guard would do.
	Guard *control.Explanation `json:"guard,omitempty"`
	// LookUp and Connection are what the worker sees.
	LookUp     *ProbeResult `json:"look_up,omitempty"`
	Connection *ProbeResult `json:"connection,omitempty"`
	// Problem says why something could not be tried.
	Problem string `json:"problem,omitempty"`
}

// ProbeResult is what one probe in the worker saw.
type ProbeResult struct {
	Probe   string       `json:"probe"` // workshop-init probe …
	Seen    string       `json:"seen"`
	Detail  string       `json:"detail,omitempty"`
	Outcome ProbeOutcome `json:"outcome"`
}

// ProbeOutcome is what a probe's words mean.
type ProbeOutcome string

const (
	ProbeReached ProbeOutcome = "reached" // the host answered
	ProbeRefused ProbeOutcome = "refused" // by the room or the guard
	ProbeSilent  ProbeOutcome = "silent"  // open, and nobody says anything
	ProbeFailed  ProbeOutcome = "failed"  // closed, by whomever
)

// tryOut asks the guard, which has no say about the room's own loopback, and tries the
// connection in the worker.
func (env *Env) tryOut(ctx context.Context, v *PolicyView, x endpoint, e *Explanation, o ExplainRequest) {
	if v.State == nil || e.room == nil || x.own() && o.NoProbe {
		return
	}
	var g control.Explanation
	ask := control.Request{Op: control.OpExplain, Room: e.Room, Host: e.Host, Port: e.Port, NoLookUp: o.NoProbe}
	if !o.NoProbe {
		ask.From = probeSource()
	}
	var err error
	if !x.own() {
		err = env.withGuard(ctx, v.engine, func(c *control.Client) error { return c.Do(ask, &g) })
	}
	if o.NoProbe {
		if err == nil && (usedUp(g) || g.Address != "") {
			e.compareGuard(x, g)
		}
		return
	}
	e.Now = &ProbedNow{}
	switch {
	case x.own():
	case err != nil:
		e.differs("the guard can't say: %s", Printable(err.Error()))
	default:
		e.Now.Guard = &g
		e.compareGuard(x, g)
	}
	if err := v.probe(ctx, x, e, ask.From); err != nil {
		e.Now.Problem = Printable(err.Error())
		return
	}
	e.compareWorker(x)
}

func (e *Explanation) differs(format string, args ...any) {
	e.Differences = append(e.Differences, fmt.Sprintf(format, args...))
}

// usedUp reports whether the guard refuses what the lines allow, because of what
// was sent or asked for before.
func usedUp(g control.Explanation) bool {
	return !g.Allowed && (g.Reason == events.ReasonUpload || g.Reason == events.ReasonWildcard)
}

// compareGuard compares the guard's answer with the file's. What is refused for its
// address is refused, whatever the lines say, and so is what has used up its budget.
func (e *Explanation) compareGuard(x endpoint, g control.Explanation) {
	if e.Allowed && usedUp(g) || g.Address != "" {
		e.Allowed, e.Reason, e.Why, e.Suggest, e.Command = false, g.Reason, ReasonText(g.Reason, x.host(), g.Line), Printable(g.Suggest), ""
		host := x.host()
		if g.Address != "" && g.Address != host {
			e.Why = fmt.Sprintf("%s resolves to %s: %s", host, Printable(g.Address), e.Why)
		}
		if strings.HasPrefix(g.Suggest, "{cidr:") {
			host = suggestedAddress(g.Suggest)
		}
		if g.Suggest != "" {
			e.Command = allowCommand(host, e.Port, g.Suggest, roomFlag(e.room.Room, e.Workers, e.Worker))
		}
		// What others' lines allow is decided without the address.
		e.Others = slices.DeleteFunc(e.Others, func(o ExplainedOther) bool { return g.Address != "" && o.Allowed })
		return
	}
	if g.Allowed != e.Allowed {
		word := "refuses"
		if g.Allowed {
			word = "allows"
		}
		by := ""
		if g.Line != "" {
			by = " by " + LineText(g.Line)
		}
		e.differs("the running guard %s it%s (%s)", word, by, ReasonText(g.Reason, x.host(), g.Line))
		return
	}
	switch {
	case !e.Allowed:
	case g.ResolveError == control.NoAddress:
		e.Why += ", but the name has no address"
	case g.ResolveError != "":
		e.differs("it is allowed, but the guard finds no address of it: %s", Printable(g.ResolveError))
	case g.ProxyError != "":
		e.differs("it is allowed, but %s", Printable(g.ProxyError))
	}
}

// probe tries the connection from inside the worker. On 443 it is a TLS
// handshake, which any server finishes whoever its certificate is for; on 80
// only a whole request tells, and HEAD is the smallest. The guard knows by the source
// that it is a probe; an invalid one is any.
func (v *PolicyView) probe(ctx context.Context, x endpoint, e *Explanation, from netip.AddrPort) error {
	at := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	var probes []string
	if !x.addr.IsValid() {
		probes = append(probes, "dns 127.0.0.1 "+e.Host+" A limit=3s")
	}
	switch e.Port {
	case 53: // the guard's DNS, which was asked
	case 443:
		probes = append(probes, "tls "+at)
	case 80:
		host := e.Host
		if x.addr.Is6() {
			host = "[" + host + "]"
		}
		probes = append(probes, "tcp "+at+` send="HEAD / HTTP/1.1\r\nHost: `+host+`\r\nConnection: close\r\n\r\n"`)
	default:
		probes = append(probes, "tcp "+at+" limit=2s")
	}
	if len(probes) == 0 {
		return nil
	}
	command := []string{compose.InitPath, "probe"}
	for _, p := range probes {
		if from.IsValid() {
			p += " from=" + from.String()
		}
		command = append(command, p)
	}
	var out, problem bytes.Buffer
	t := v.c.ProjectRef
	code, err := v.engine.Exec(ctx, t.Name, e.Worker, engine.ExecOptions{
		Command: command, Workdir: "/", Directory: t.Dir, Stdout: &out, Stderr: &problem,
	})
	if err != nil {
		return err
	}
	var seen []ProbeResult
	for line := range bytes.Lines(out.Bytes()) {
		var s ProbeResult
		if json.Unmarshal(line, &s) == nil && len(seen) < len(probes) {
			s.Probe, s.Seen, s.Detail = probes[len(seen)], Printable(s.Seen), Printable(s.Detail)
			seen = append(seen, s)
		}
	}
	if len(seen) != len(probes) {
		return fmt.Errorf("the probe in %s ended with %d: %s", e.Worker, code, clip.Runes(problem.String(), 200))
	}
	if !x.addr.IsValid() {
		e.Now.LookUp = &seen[0]
		e.Now.LookUp.Outcome = lookUpOutcome(seen[0].Seen)
		seen = seen[1:]
	}
	if len(seen) > 0 {
		e.Now.Connection = &seen[0]
		e.Now.Connection.Outcome = connectionOutcome(seen[0], x)
	}
	return nil
}

// probeSource is a source that nothing else in a room is likely to have: an address of
// the loopback, and a port above those that Linux picks.
func probeSource() netip.AddrPort {
	addr := netip.AddrFrom4([4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(254))})
	return netip.AddrPortFrom(addr, uint16(61000+rand.N(4000)))
}

func lookUpOutcome(seen string) ProbeOutcome {
	if first, _, _ := strings.Cut(seen, ","); seen != "" {
		if _, err := netip.ParseAddr(strings.Fields(first)[0]); err == nil {
			return ProbeReached
		}
	}
	if seen == "NXDOMAIN" {
		return ProbeRefused
	}
	return ProbeFailed
}

// connectionOutcome reads what a connection saw: what the guard and the room
// answer is told from what a host answers.
func connectionOutcome(s ProbeResult, x endpoint) ProbeOutcome {
	switch s.Seen {
	case "handshake", "NOTTLS":
		return ProbeReached
	case "data":
		if strings.HasPrefix(s.Detail, "HTTP/1.1 403") && strings.Contains(s.Detail, "X-Workshop-Deny") {
			return ProbeRefused
		}
		if strings.HasPrefix(s.Detail, "HTTP/1.1 502") && strings.Contains(s.Detail, "workshop:") {
			return ProbeFailed
		}
		return ProbeReached
	case "TLSALERT":
		// The guard refuses a name with access_denied, and an address without a
		// name with unrecognized_name; other alerts are the host's.
		if strings.Contains(s.Detail, "access denied") || x.addr.IsValid() && strings.Contains(s.Detail, "unrecognized name") {
			return ProbeRefused
		}
		return ProbeReached
	case "NXDOMAIN", "ECONNREFUSED", "EPERM", "EACCES":
		if x.own() { // nothing listens there
			return ProbeFailed
		}
		return ProbeRefused
	case "TIMEOUT":
		return ProbeSilent
	}
	return ProbeFailed
}

// compareWorker compares what the worker sees with what is expected.
func (e *Explanation) compareWorker(x endpoint) {
	if s := e.Now.LookUp; s != nil {
		resolvable := e.room.Compile().Resolvable(x.name).Allowed
		if !resolvable && s.Outcome == ProbeReached && !strings.HasPrefix(s.Seen, "127.") {
			e.differs("the name is refused, but the worker's look-up got %s", s.Seen)
		}
	}
	s := e.Now.Connection
	if s == nil || x.own() {
		return
	}
	what := s.Seen
	if s.Detail != "" {
		what += " (" + clip.Runes(s.Detail, 100) + ")"
	}
	switch {
	case e.Allowed && e.Now.Guard != nil && (e.Now.Guard.ResolveError != "" || e.Now.Guard.ProxyError != ""): // said already
	case e.Allowed && s.Outcome == ProbeRefused:
		e.differs("it is allowed, but the worker was refused: %s", what)
	case e.Allowed && s.Outcome == ProbeFailed:
		e.differs("it is allowed, but the worker's connection failed: %s; the host may not listen there", what)
	case !e.Allowed && s.Outcome == ProbeReached:
		e.differs("it is refused, but the worker reached it: %s", what)
	case !e.Allowed && s.Outcome == ProbeSilent:
		e.differs("it is refused, but the worker's connection stayed open: %s", what)
	}
}

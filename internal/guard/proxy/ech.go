package proxy

import (
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// byOuterName applies the function of that name to a route and its later policies.
func (x *route) byOuterName(p *policy.Room, outer firewall.Name) {
	again := x.again
	x.Decision = byOuterName(p, x.Decision, outer)
	x.again = func(p *policy.Room) firewall.Decision { return byOuterName(p, again(p), outer) }
}

// byOuterName decides about a ClientHello whose inner name is encrypted (ECH,
// RFC 9849), or that pretends to be one (GREASE), which looks the same. What d
// allowed by the outer name passes only if the line says `ech: allow`, for the
// inner one can be any name of that provider; or in mode open, which promises
// nothing about names.
func byOuterName(p *policy.Room, d firewall.Decision, outer firewall.Name) firewall.Decision {
	switch {
	case !d.Allowed, p.Mode == firewall.Open, d.Rule != nil && d.Rule.ECH:
		return d
	}
	return firewall.Decision{Rule: d.Rule, Reason: events.ReasonECH, Suggest: "{host: " + outer.String() + ", ech: allow}"}
}

// noteECH notes that a name couldn't be checked.
func (r *Room) noteECH(kind events.Kind, d firewall.Decision, outer firewall.Name, orig netip.AddrPort) {
	e := events.Event{Kind: kind, Verdict: events.Note, Reason: events.ReasonECH, Name: outer.String(), Port: orig.Port(), Protocol: "tcp"}
	if orig.Addr().IsValid() {
		e.Address = orig.Addr().String()
	}
	if d.Rule != nil {
		e.Rule = d.Rule.Line
	}
	r.Report(e)
}

// alertOf is what a client is told about a refused name.
func alertOf(d firewall.Decision) byte {
	if d.Reason == events.ReasonECH {
		return alertHandshakeFailure
	}
	return alertAccessDenied
}

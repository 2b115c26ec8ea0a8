package proxy

import (
	"net/netip"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// byOuterName applies the function byOuterName to a route and its later decisions.
func (x *route) byOuterName(p *policy.Room, outer firewall.Name) {
	again := x.again
	x.Decision = byOuterName(p, x.Decision, outer)
	x.again = func(p *policy.Room) firewall.Decision { return byOuterName(p, again(p), outer) }
}

// byOuterName decides about a ClientHello with an encrypted inner name (ECH,
// RFC 9849) or with GREASE, which looks the same. What d allowed by the outer name
// passes only if the line says `ech: allow`, as the inner name can be any of that
// provider; or in mode open, which promises nothing about names.
func byOuterName(p *policy.Room, d firewall.Decision, outer firewall.Name) firewall.Decision {
	switch {
	case !d.Allowed, p.Mode == firewall.Open, d.Rule != nil && d.Rule.ECH:
		return d
	}
	return firewall.Decision{Rule: d.Rule, Reason: events.ReasonECH, Suggest: "{host: " + outer.String() + ", ech: allow}"}
}

// noteECH writes an event: a name couldn't be checked.
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

// alertOf returns the TLS alert for a refused name.
func alertOf(d firewall.Decision) byte {
	if d.Reason == events.ReasonECH {
		return alertHandshakeFailure
	}
	return alertAccessDenied
}

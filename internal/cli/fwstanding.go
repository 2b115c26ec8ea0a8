package cli

import (
	"slices"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
)

// standing is how a change stands to what a room goes by already.
type standing int

const (
	needed  standing = iota // the change changes something
	already                 // it is so already
	opened                  // the room's mode is open
	denied                  // a deny line has it: allowing it would do nothing
)

// standing tells it, and the line that says so. everywhere is a change of all
// rooms; until is when it would end, zero: not before the guard.
func (r *roomLines) standing(rule firewall.Rule, deny, everywhere bool, until time.Time) (standing, string) {
	allows, denies := slices.Clone(r.allow), slices.Clone(r.deny)
	takesBack := false
	for _, l := range r.live {
		back := !deny && l.Deny && l.Rule.Target() == rule.Target() && (l.Room != "" || everywhere)
		lasts := l.Until.IsZero() || !until.IsZero() && !l.Until.Before(until)
		switch {
		case l.Deny && deny && lasts:
			denies = append(denies, asLine(l))
		case back:
			// What is said later about the same target counts.
			takesBack = takesBack || portsMeet(rule.Ports, l.Rule.Ports)
		case l.Deny && !deny:
			denies = append(denies, asLine(l))
		case !l.Deny && lasts:
			allows = append(allows, asLine(l))
		}
	}
	// A deny line is about who is meant, not about how it is opened.
	plain := rule
	plain.Private, plain.ECH, plain.Upload = false, false, firewall.Budget{}
	if firewall.CoveredBy(plain, denies) {
		if deny {
			return already, lineOf(plain, denies)
		}
		return denied, lineOf(plain, denies)
	}
	switch {
	case deny, takesBack:
		return needed, ""
	case firewall.CoveredBy(rule, allows):
		return already, lineOf(rule, allows)
	case r.Mode == firewall.Open && isPublic(rule):
		return opened, ""
	}
	return needed, ""
}

// portsMeet tells whether two lists have a port in common.
func portsMeet(x, y []firewall.PortRange) bool {
	return !slices.Equal(firewall.SubtractPorts(x, y), firewall.NormalizePorts(x))
}

func asLine(l firewall.Live) firewall.Rule {
	r := l.Rule
	r.Line = liveText(l)
	return r
}

// liveText names a live line.
func liveText(l firewall.Live) string {
	verb := "allow"
	if l.Deny {
		verb = "deny"
	}
	text := "`workshop firewall " + verb + " " + ruleArg(l.Rule, l.Deny) + "`"
	if !l.Until.IsZero() {
		text += ", until " + app.WhenText(l.Until)
	}
	return text
}

// lineOf names the line that covers a rule; several lines may do it together.
func lineOf(rule firewall.Rule, lines []firewall.Rule) string {
	for _, l := range lines {
		if !firewall.CoveredBy(rule, []firewall.Rule{l}) {
			continue
		}
		text := l.Target() + " at " + l.Line
		switch {
		case l.Line == "" || l.Line[0] == '`':
			text = l.Line
		case l.Preset != "":
			text = "preset " + l.Preset + " at " + l.Line
		}
		return text
	}
	return "several lines together"
}

// isPublic tells whether a rule opens nothing but what mode open reaches too.
func isPublic(r firewall.Rule) bool {
	if !r.CIDR.IsValid() {
		return !r.Private && !r.ECH
	}
	c, ok := firewall.ClassifyRange(r.CIDR)
	return ok && c == firewall.Public
}

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"

	"github.com/llmdo/workshop/internal/app"
)

// explainText prints explanations for a person.
func (a *program) explainText(all []*fwExplanation) error {
	red, green, faint := paint(a.colorOut(), color.FgRed, color.Bold), paint(a.colorOut(), color.FgGreen, color.Bold), paint(a.colorOut(), color.Faint)
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		verdict := red("refused")
		if e.Allowed {
			verdict = green("allowed")
		}
		fmt.Fprintf(a.Out, "%s: %s for %s\n", verdict, e.target(), e.forWhom())
		put := func(key, format string, args ...any) {
			lines := strings.Split(fmt.Sprintf(format, args...), "\n")
			fmt.Fprintf(a.Out, "  %-9s %s\n", key, strings.Join(lines, "\n"+strings.Repeat(" ", 12)))
		}
		put("reason", "%s", e.Why)
		if e.Line != nil {
			put("line", "%s", e.Line.text())
		}
		for _, l := range e.Near {
			put("near", "with port %s at %s", l.Ports, l.text())
		}
		if e.Suggest != "" && !e.Allowed {
			allow := "- " + e.Suggest + " below network.allow"
			if e.Command != "" {
				allow += "\nor at once: " + a.commands("`"+e.Command+"`")
			}
			put("to allow", "%s", allow)
		}
		for _, s := range e.Enforced {
			who, does, _ := strings.Cut(s, ": ")
			put(who, "%s", faint(does))
		}
		for _, o := range e.Others {
			put("others", "%s", o.text(e))
		}
		if e.Now != nil {
			showNow(e.Now, put)
		}
		for _, d := range e.Differences {
			put("DIFFERS", "%s", red(d))
		}
	}
	return nil
}

// forWhom names the worker, and with whom it shares its room.
func (e *fwExplanation) forWhom() string {
	others := slices.DeleteFunc(slices.Clone(e.Workers), func(w string) bool { return w == e.Worker })
	if len(others) == 0 || e.room == nil {
		return e.Worker
	}
	return fmt.Sprintf("%s, which shares a room with %s", e.Worker, app.WorkersText(others))
}

// text is the line with its place.
func (l *fwLine) text() string {
	switch {
	case l.Live:
		return "a live change: " + l.Text
	case l.fwRule.Line == "":
		return l.Text
	}
	s := l.fwRule.Line + ": " + l.Text
	if l.Preset != "" {
		s += fmt.Sprintf("\n%s, of preset %s (version %d): %s", l.Target, l.Preset, l.Version, l.Purpose)
	} else if l.Target != "" && !strings.Contains(l.Text, l.Target) {
		s += " (" + l.Target + ")"
	}
	return s
}

// text says what becomes of other workers' connections.
func (o fwOther) text(e *fwExplanation) string {
	word := "refused"
	if o.Allowed {
		word = "allowed"
	}
	s := app.WorkersText(o.Workers) + ": " + word
	if o.Reason != e.Reason {
		s += ", " + reasonText(o.Reason)
	}
	if o.Line != "" {
		s += " (" + o.Line + ")"
	}
	return s
}

// showNow prints what is seen now.
func showNow(n *fwNow, put func(key, format string, args ...any)) {
	if g := n.Guard; g != nil {
		word := "would refuse it"
		if g.Allowed {
			word = "would let it through"
		}
		if g.Line != "" {
			word += ", by " + app.Printable(g.Line)
		}
		for _, x := range g.Addresses {
			word += "\n" + app.Printable(x.Address) + ": "
			if x.Allowed {
				word += "would be dialled"
			} else {
				word += reasonText(x.Reason)
			}
		}
		if g.ResolveError != "" {
			word += "\nno address: " + app.Printable(g.ResolveError)
		}
		put("now", "the guard %s", word)
	}
	if s := n.LookUp; s != nil {
		put("now", "the worker's look-up: %s", s.Seen)
	}
	if s := n.Connection; s != nil {
		words := map[outcome]string{reached: "reached", refused: "refused", silent: "open, and nobody says anything", failed: "closed"}
		kind, _, _ := strings.Cut(s.Probe, " ")
		detail := cutEnd(s.Detail, 100)
		if detail != "" {
			detail = ", " + detail
		}
		put("now", "the worker's connection (%s): %s: %s%s", kind, words[s.Outcome], s.Seen, detail)
	}
	if n.Problem != "" {
		put("now", "not tried in the worker: %s", n.Problem)
	}
}

package firewall

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/fatih/color"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// eventText writes events for a person.
type eventText struct {
	w       io.Writer
	width   int // of the terminal; 0: lines aren't wrapped
	workers int // width of that column
	local   *time.Location
	day     string          // of the last line
	told    map[string]bool // suggestions, each once
	tried   map[triedEvent]time.Time
	paint   map[events.Verdict]func(string) string
	faint   func(string) string
	command func(string) string // completes a command line
}

// maxWorkersWidth of the column with the workers' names.
const maxWorkersWidth = 24

func (a verbs) eventText(seen engine.Observed) *eventText {
	on := a.ColorOut()
	t := &eventText{
		w: a.Out, width: a.Columns(a.Out), workers: len("guard"), local: time.Local, told: map[string]bool{}, day: time.Now().Format(time.DateOnly),
		faint: terminal.Paint(on, color.Faint), command: a.CommandLine,
		paint: map[events.Verdict]func(string) string{
			events.Deny: terminal.Paint(on, color.FgRed), events.Allow: terminal.Paint(on, color.FgGreen),
			events.End: terminal.Paint(on, color.Faint), events.Note: terminal.Paint(on, color.FgYellow),
		},
	}
	of := map[string]int{} // length of the names of a room's workers
	for _, c := range seen.Containers {
		if c.NetworkOf != "" {
			of[c.NetworkOf] += len(c.Service) + 1
			t.workers = min(max(t.workers, of[c.NetworkOf]-1), maxWorkersWidth)
		}
	}
	return t
}

var verdictWords = map[events.Verdict]string{
	events.Deny: "denied", events.Allow: "allowed", events.End: "ended", events.Note: "note",
}

// verdictWidth of the column with those words.
const verdictWidth = len("allowed")

// print writes one event, and the command that allows what it refuses.
func (t *eventText) print(_ []byte, l events.Line) error {
	word, known := verdictWords[l.Verdict]
	if !known || t.repeats(l) {
		return nil
	}
	at := l.Time.In(t.local)
	if day := at.Format(time.DateOnly); day != t.day {
		t.day = day
		fmt.Fprintln(t.w, t.faint(day))
	}
	workers := "guard"
	if len(l.Workers) > 0 {
		workers = terminal.Fit(app.Printable(strings.Join(l.Workers, ",")), maxWorkersWidth)
	}
	parts := []string{}
	if what := app.EventTarget(l); what != "" {
		if l.Name != "" && l.Address != "" {
			what += " (" + app.Printable(l.Address) + ")"
		}
		if l.Kind == events.DNS {
			what += " (look-up)"
		}
		parts = append(parts, what)
	}
	if l.Explained {
		parts = append(parts, "tried by `firewall explain` or `verify`")
	}
	if l.Count > 1 {
		parts = append(parts, fmt.Sprintf("×%d", l.Count))
	}
	if words := eventReason(l); words != "" {
		parts = append(parts, t.faint(words))
	}
	head := fmt.Sprintf("%s  %-*s  %s  ", at.Format(time.TimeOnly), t.workers, workers, t.paint[l.Verdict](fmt.Sprintf("%-*s", verdictWidth, word)))
	fmt.Fprintln(t.w, head+t.wrapped(strings.Join(parts, "  "), len(time.TimeOnly)+2+t.workers+2+verdictWidth+2))
	return t.suggest(l)
}

// triedEvent is what `firewall explain` or `verify` tried, and what became of it.
type triedEvent struct {
	room, target, reason string
	kind                 events.Kind
	verdict              events.Verdict
}

// repeats reports whether the same was tried just before: `firewall explain` looks a name
// up several times.
func (t *eventText) repeats(l events.Line) bool {
	if !l.Explained {
		return false
	}
	if t.tried == nil {
		t.tried = map[triedEvent]time.Time{}
	}
	what := triedEvent{l.Room, app.EventTarget(l), l.Reason, l.Kind, l.Verdict}
	last := t.tried[what]
	t.tried[what] = l.Time
	return l.Time.Sub(last) <= 2*events.Window
}

// suggest writes once what would allow something.
func (t *eventText) suggest(l events.Line) error {
	o, ok := app.OpeningOf(l, "")
	if key := o.Line + "\n" + o.Command; !ok || t.told[key] {
		return nil
	} else {
		t.told[key] = true
	}
	text := "network.allow: - " + o.Line
	if o.Command != "" {
		text = t.command(o.Command)
	}
	indent := len(time.TimeOnly) + 2 + t.workers + 2
	begin, gap := "to allow it:", " "
	if l.Kind == events.DNS && !strings.HasPrefix(o.Line, "{") { // on which port it would have been connected to isn't known
		begin = "to allow 80 and 443 (SSH is port 22):"
	}
	if t.width > 0 && indent+len(begin)+len(gap)+len(text) > t.width { // it is to be copied, and stays whole
		gap = "\n  "
	}
	_, err := fmt.Fprintf(t.w, "%*s%s%s%s\n", indent, "", begin, gap, text)
	return err
}

// wrapped breaks a text that begins at a column for the terminal.
func (t *eventText) wrapped(text string, at int) string {
	if t.width == 0 {
		return text
	}
	lines := textwrap.Lines(text, max(20, t.width-at), 2)
	return strings.ReplaceAll(lines, "\n", "\n"+strings.Repeat(" ", at))
}

// eventReason says why, in words.
func eventReason(l events.Line) string {
	rule := app.Printable(l.Rule)
	switch {
	case l.Verdict == events.End:
		return fmt.Sprintf("sent %s, received %s", units.HumanSize(float64(l.BytesUp)), units.HumanSize(float64(l.BytesDown)))
	case l.Verdict == events.Note && rule != "" && app.EventTarget(l) == "": // it says what it is about
		return rule
	case l.Verdict == events.Allow && l.Reason == firewall.ReasonAllowed && rule != "":
		return "by " + rule
	}
	words := app.WhyText(l)
	if rule != "" && !(l.Verdict == events.Deny && strings.HasPrefix(rule, firewall.LiveLine)) { // the words name it
		words += " (" + rule + ")"
	}
	return words
}

package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// printPlan is the result of a dry run: what was found on this machine, and what
// changes in its order; with -v every step. Independent steps run concurrently.
func (a verbs) printPlan(ready *app.Project, p *engine.Plan) error {
	if f := ready.Compiled.Facts; f != nil {
		fmt.Fprintln(a.Out, "facts:")
		table := a.Table()
		for _, fact := range factLines(ready.Workshop, f) {
			fmt.Fprintf(table, "  %s\t%s\n", fact[0], fact[1])
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintf(a.Out, "plan for project %s:\n", p.Project)
	lines := a.GrantChanges(ready).PlanLines(p)
	if a.Verbose {
		lines = nil
		for _, step := range p.Steps {
			lines = append(lines, stepLine(step))
		}
	}
	if len(lines) == 0 {
		fmt.Fprintln(a.Out, "  nothing to do")
		return nil
	}
	digits := len(strconv.Itoa(len(lines)))
	for i, line := range lines {
		a.WriteLine(fmt.Sprintf("  %*d. %s", digits, i+1, app.Printable(line)))
	}
	return nil
}

// stepLine is "create container/guard (not found)".
func stepLine(s engine.Step) string {
	if s.Op == engine.OpWaitReady {
		return fmt.Sprintf("wait until %s is ready (%s)", s.Target, s.Cause)
	}
	return fmt.Sprintf("%s %s (%s)", s.Op, s.Target, s.Cause)
}

// factLines are name and value, in a fixed order.
func factLines(w *workshop.Workshop, f *compose.Facts) [][2]string {
	lines := [][2]string{
		{"project directory", f.ProjectDir},
		{"user of the workers", fmt.Sprintf("%d:%d (%s)", f.UID, f.GID, f.UserReason)},
		{"engine", fmt.Sprintf("%s, %s, %s", f.Arch, yesNo(f.Local, "sees this machine's files", "elsewhere"), yesNo(f.IPv6, "IPv6", "no IPv6"))},
		{"runtime directory", f.RuntimeDir},
	}
	for _, source := range slices.Sorted(maps.Keys(f.Sources)) {
		s := f.Sources[source]
		text := s.Real
		lines = append(lines, [2]string{"source " + source, text})
	}
	for _, k := range slices.SortedFunc(maps.Keys(f.Ports), func(x, y compose.PortKey) int {
		return cmp.Or(cmp.Compare(x.Worker, y.Worker), cmp.Compare(x.Target, y.Target))
	}) {
		lines = append(lines, [2]string{fmt.Sprintf("port %d of %s", k.Target, k.Worker), strconv.Itoa(int(f.Ports[k]))})
	}
	for _, source := range f.ToCreate {
		lines = append(lines, [2]string{"source " + source, "is created"})
	}
	for _, source := range slices.Sorted(maps.Keys(f.Protected)) {
		if dirs := app.ProtectedText(w, source, f.Protected[source]); dirs != "" {
			lines = append(lines, [2]string{"read-only in " + source, dirs})
		}
	}
	return lines
}

func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

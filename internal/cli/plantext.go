package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// printPlan is the result of a dry run: what was found on this machine, and
// the steps.
func (a *program) printPlan(w *workshop.Workshop, f *compose.Facts, p *engine.Plan) error {
	if f != nil {
		fmt.Fprintln(a.Out, "facts:")
		table := tabwriter.NewWriter(a.Out, 2, 0, 2, ' ', 0)
		for _, fact := range factLines(w, f) {
			fmt.Fprintf(table, "  %s\t%s\n", fact[0], fact[1])
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintf(a.Out, "plan for project %s:\n", p.Project)
	if len(p.Steps) == 0 {
		fmt.Fprintln(a.Out, "  nothing to do")
		return nil
	}
	for line := range strings.Lines(p.String()) {
		fmt.Fprint(a.Out, "  "+line)
	}
	return nil
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
	for _, source := range f.ToCreate {
		lines = append(lines, [2]string{"source " + source, "is created"})
	}
	for _, source := range slices.Sorted(maps.Keys(f.Protected)) {
		if dirs := protectedText(w, source, f.Protected[source]); dirs != "" {
			lines = append(lines, [2]string{"read-only in " + source, dirs})
		}
	}
	return lines
}

// sayFacts says what `up` did to the project directory, and what it keeps
// workers from writing to (B8).
func (a *program) sayFacts(w *workshop.Workshop, f *compose.Facts, created []string) {
	for _, source := range created {
		a.say("created %s for %d:%d (%s)", printable(source), f.UID, f.GID, f.UserReason)
	}
	for _, source := range slices.Sorted(maps.Keys(f.Sources)) {
		a.sayLeads(f.ProjectDir, source, f.Sources[source].Real)
	}
	for _, source := range slices.Sorted(maps.Keys(f.Protected)) {
		if dirs := protectedText(w, source, f.Protected[source]); dirs != "" {
			a.say("read-only in %s: %s (B8)", printable(source), printable(dirs))
		}
	}
}

// sayLeads says where links lead from a source: the workshop file doesn't show it.
func (a *program) sayLeads(dir, source, real string) {
	written := filepath.Clean(source)
	if !filepath.IsAbs(written) {
		written = filepath.Join(dir, written)
	}
	if real != "" && real != written {
		a.warn("the source %s is a symbolic link, or behind one: what is mounted is %s", printable(source), printable(real))
	}
}

// protectedText names the directories that are read-only below a source. Under
// `git: rw` those are the hooks of git directories, not the rest of them.
func protectedText(w *workshop.Workshop, source string, dirs []compose.Protected) string {
	var git, plain bool
	for i := range w.Workers {
		for _, m := range w.Workers[i].Container.Mounts {
			here := m.ReadWrite && m.Source.V == source
			git, plain = git || here && m.GitWritable, plain || here && !m.GitWritable
		}
	}
	var shown []string
	for _, dir := range dirs {
		text := dir.Path
		switch {
		case dir.Kind == compose.GitDir && git && plain:
			text += " (writable where `git: rw`)"
		case dir.Kind == compose.GitDir && git, dir.Kind == compose.GitHooks && !git:
			continue
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, ", ")
}

func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

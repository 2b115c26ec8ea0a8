package diff

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// guards compares what guards the workshop: the lock, the gate in continuous
// integration, the owners of its files, and what `.env` sets of its variables.
func guards(base, head *Side) (rows []Row) {
	for _, name := range slices.Sorted(maps.Keys(base.Files)) {
		was, is := base.Files[name], head.Files[name]
		at, old := diag.Range{Filename: name}, diag.Range{Filename: name}
		switch {
		case was == is:
		case slices.Contains(owners, name):
			rows = append(rows, owned(name, was, is)...)
		case IsGate(was) && is == "":
			rows = append(rows, Row{State: Widened, Surface: "gate", Before: name + " runs the comparison", At: at, Was: old})
		case IsGate(was):
			rows = append(rows, Row{State: Changed, Surface: "gate", Before: name, After: name + ", other text", At: lineOf(name, is, was), Was: lineOf(name, was, is)})
		}
	}
	if base.Lock != "" && head.Lock == "" {
		at := diag.Range{Filename: base.Lock}
		rows = append(rows, Row{State: Widened, Surface: "lock", Before: base.Lock, At: at, Was: at})
	}
	return append(rows, settings(base, head)...)
}

// owned compares the lines of CODEOWNERS that are about a workshop's files.
func owned(name, was, is string) (rows []Row) {
	lines := map[string]bool{}
	for line := range strings.Lines(is) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	n := 0
	for line := range strings.Lines(was) {
		n++
		text := strings.Join(strings.Fields(line), " ")
		if strings.Contains(text, "workshop") && !strings.HasPrefix(text, "#") && !lines[text] {
			old := diag.Range{Filename: name, Start: diag.Pos{Line: n, Column: 1}, End: diag.Pos{Line: n, Column: 1}}
			rows = append(rows, Row{State: Widened, Surface: "gate", Before: text, At: diag.Range{Filename: name}, Was: old})
		}
	}
	return rows
}

// lineOf is the line from which a text differs from another one.
func lineOf(name, text, other string) diag.Range {
	line := 1 + strings.Count(common(text, other), "\n")
	return diag.Range{Filename: name, Start: diag.Pos{Line: line, Column: 1}, End: diag.Pos{Line: line, Column: 1}}
}

// settings compares what `.env`, a file of the repository, says of the variables that
// head uses. What they mean isn't decided, and a value may be a secret: it is not shown.
func settings(base, head *Side) (rows []Row) {
	if head.Workshop == nil || base.Workshop == nil {
		return nil
	}
	file := diag.Range{Filename: path.Join(path.Dir(head.Workshop.File), ".env")}
	for _, v := range head.Workshop.Variables {
		was, had := base.Variables[v.Name]
		is, has := head.Variables[v.Name]
		if had == has && was == is || !slices.ContainsFunc(base.Workshop.Variables, func(o workshop.Variable) bool { return o.Name == v.Name }) {
			continue // one that is new is told where it is used
		}
		row := Row{State: Unknown, Surface: ".env", At: file, Was: file}
		if had {
			row.Before = v.Name + "=…"
		}
		if has {
			row.After = v.Name + "=…"
		}
		if had && has {
			row.After += ", another value"
		}
		rows = append(rows, row)
	}
	return rows
}

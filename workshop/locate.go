package workshop

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop/worker"
)

// locator finds worker files below the folder of workshop.yaml.
type locator struct {
	fsys     fs.FS
	dir      string  // folder of workshop.yaml
	file     string  // workshop.yaml
	root     string  // of the fs.FS
	origin   string  // address of the source, before the names of its files; "" for the project
	mounts   []Mount // the workshop's
	problems *problems
	existing []string // names of worker files that are there, once asked for
	ofBases  []string // names of the bases' workers
	closed   bool     // a base has no workers but its own
	all      *workerFiles
}

// workerFiles are those of all workers of a workshop, wherever they come from.
type workerFiles struct {
	schemas worker.Schemas
	bytes   int // that were read
}

// place is where a problem of an entry's file is shown.
func (l *locator) place(e workerEntry) diag.Range {
	if e.File.V != "" {
		return e.File.Source.Range
	}
	return e.Name.Source.Range
}

// shown returns a path as workshop.yaml would write it.
func (l *locator) shown(p string) string {
	if l.dir == "." {
		return p
	}
	return strings.TrimPrefix(p, l.dir+"/")
}

// find returns the file of an entry: the one that `file:` names, or the only one
// at the places for its name. None and several are problems.
func (l *locator) find(e workerEntry) (worker.Candidate, bool) {
	if e.File.V != "" {
		return l.named(e)
	}
	name := e.Name.V
	found, looked := l.candidates(name)
	switch len(found) {
	case 1:
		return found[0], l.reachable(e, found[0].Path)
	case 0:
		l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-not-found", Range: e.Name.Source.Range,
			Summary: fmt.Sprintf("there is no file for the worker %s", name),
			Detail:  "Looked for " + strings.Join(looked, ", ") + ".",
			Hint:    l.missingHint(name)})
		return worker.Candidate{}, false
	}
	names, detail := l.foundText(found)
	l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-ambiguous", Range: e.Name.Source.Range,
		Summary: fmt.Sprintf("the worker %s has %d files: %s", name, len(found), strings.Join(names, " and ")), Detail: detail,
		Hint: fmt.Sprintf("say which one: `- {name: %s, file: %s}`", name, names[0])})
	return worker.Candidate{}, false
}

// foundText are the files as workshop.yaml would write them, and whether a worker may
// have written one.
func (l *locator) foundText(found []worker.Candidate) (names []string, detail string) {
	var writable []string
	for _, c := range found {
		names = append(names, l.shown(c.Path))
		if l.writable(c.Path) {
			writable = append(writable, l.shown(c.Path))
		}
	}
	if len(writable) > 0 {
		detail = "A worker may have written " + strings.Join(writable, " or ") + ", which a mount makes writable."
	}
	return names, detail
}

// candidates are the files at the places for a name, and the names of these places.
func (l *locator) candidates(name string) (found []worker.Candidate, looked []string) {
	for _, c := range worker.Candidates(name) {
		looked = append(looked, c.Path)
		c.Path = path.Join(l.dir, c.Path)
		if l.isFile(c.Path) {
			found = append(found, c)
		}
	}
	return found, looked
}

// writable reports whether a file is below a source that the workshop mounts
// writable.
func (l *locator) writable(file string) bool {
	return slices.ContainsFunc(l.mounts, func(m Mount) bool {
		source, ok := l.hostPath(m.Source.V, l.root)
		return m.ReadWrite && ok && subpath.Within(path.Join("/", l.root, file), source)
	})
}

// named returns the file of an entry with `file:`.
func (l *locator) named(e workerEntry) (worker.Candidate, bool) {
	refuse := func(code, summary, hint string) (worker.Candidate, bool) {
		l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: code, Range: e.File.Source.Range, Summary: summary, Hint: hint})
		return worker.Candidate{}, false
	}
	c := worker.Candidate{Path: path.Join(l.dir, e.File.V), Dialect: worker.DialectOf(e.File.V)}
	switch {
	case path.IsAbs(e.File.V) || strings.HasPrefix(e.File.V, "~") || !l.inside(c.Path):
		return refuse("worker-outside", fmt.Sprintf("the file of the worker %s is outside of the project: %s", e.Name.V, e.File.V),
			"copy it into the folder of workshop.yaml")
	case c.Dialect == "":
		return refuse("worker-dialect", fmt.Sprintf("%s is not a worker file", e.File.V),
			"a worker file ends in .md, .worker or .agent, or is called SKILL.md")
	case !l.isFile(c.Path):
		return refuse("worker-not-found", fmt.Sprintf("there is no file %s", c.Path), l.wrongFileHint(e.Name.V))
	}
	return c, l.reachable(e, c.Path)
}

// inside reports whether a path stays in the folder of workshop.yaml, as it is
// written.
func (l *locator) inside(p string) bool {
	return fs.ValidPath(p) && (l.dir == "." || strings.HasPrefix(p, l.dir+"/"))
}

// reachable refuses a file to which a symbolic link leads out of the project:
// another repository's workshop must not show what is elsewhere. File
// systems that don't tell of links (fs.ReadLinkFS) have none to follow.
func (l *locator) reachable(e workerEntry, file string) bool {
	to, out := l.follow(file)
	if !out {
		return true
	}
	l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-outside", Range: l.place(e),
		Summary: fmt.Sprintf("the file of the worker %s is outside of the project: %s leads to %s", e.Name.V, l.shown(file), to),
		Hint:    "copy it into the project"})
	return false
}

// follow resolves links by their text. out is true when one leads out of the
// folder, with where it leads.
func (l *locator) follow(file string) (to string, out bool) {
	switch end := followLinks(l.fsys, "", file); {
	case end.loop:
		return "itself", true
	case end.inside == "":
		return end.abs + end.up, true
	default:
		return end.inside, !l.inside(end.inside)
	}
}

func (l *locator) isFile(p string) bool {
	_, err := fs.Stat(l.fsys, p)
	// A link out of an os.Root can't be followed, but counts as a file. What
	// is not one is refused when it is read.
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid)
}

// missingHint says what to write, or which of the existing files is meant.
func (l *locator) missingHint(name string) string {
	if full(l.problems) {
		return ""
	}
	if l.existing == nil {
		l.existing = append([]string{}, l.list()...)
	}
	inline := "tools: [Read, Grep]"
	if len(l.ofBases) > 0 { // else it would narrow one of the base
		inline += ", instructions: …"
	}
	make := fmt.Sprintf("define it here, `- {name: %s, %s}`, or create %s with the lines `---`, `allowed-tools: Read, Grep`, `---` and what the worker is to do", name, inline, workerFileHint(name))
	near := nearest(name, l.ofBases)
	switch {
	case near != "" && l.closed:
		return "did you mean " + near + ", of the base?"
	case near != "":
		return "did you mean " + near + ", of the base? Else " + make
	case l.closed && len(l.ofBases) > 0:
		return "the base has " + strings.Join(firstOf(l.ofBases, 20), ", ") + ", and lets no project have workers of its own"
	}
	if near := nearest(name, l.existing); near != "" {
		return "did you mean " + near + "? Else " + make
	}
	return make
}

// wrongFileHint is missingHint where `file:` names what isn't there: the
// worker's name may be right.
func (l *locator) wrongFileHint(name string) string {
	hint := l.missingHint(name)
	if hint != "" && slices.Contains(l.existing, name) {
		return "leave `file:` out: there is a file for " + name
	}
	return hint
}

// full reports whether further problems are only counted: words for them would be
// work for nothing.
func full(p *problems) bool { return len(p.list) >= maxProblems }

// list returns the names for which a worker file is there, sorted.
func (l *locator) list() []string {
	var out []string
	for _, d := range []string{"workers", ".", ".claude/agents", "skills", ".claude/skills"} {
		entries, _ := fs.ReadDir(l.fsys, path.Join(l.dir, d))
		for _, e := range entries[:min(len(entries), maxItems)] {
			name := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
			for _, c := range worker.Candidates(name) {
				if path.Join(d, e.Name()) == c.Path || path.Join(d, e.Name()) == path.Dir(c.Path) && e.IsDir() && l.isFile(path.Join(l.dir, c.Path)) {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

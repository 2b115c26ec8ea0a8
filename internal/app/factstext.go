package app

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// sayFacts says what `up` did to the project directory, and what it keeps
// workers from writing to (B8).
func (env *Env) sayFacts(w *workshop.Workshop, f *compose.Facts, created []string) {
	for _, source := range created {
		env.say("created %s for %d:%d (%s)", Printable(source), f.UID, f.GID, f.UserReason)
	}
	for _, source := range slices.Sorted(maps.Keys(f.Sources)) {
		env.sayLeads(f.ProjectDir, source, f.Sources[source].Real)
	}
	for _, source := range slices.Sorted(maps.Keys(f.Protected)) {
		if dirs := ProtectedText(w, source, f.Protected[source]); dirs != "" {
			env.say("read-only in %s: %s (B8)", Printable(source), Printable(dirs))
		}
	}
	env.sayRepositories(w, f)
	env.sayAuthor(w, f)
}

// sayAuthor says whose name the commits of workers have (B45).
func (env *Env) sayAuthor(w *workshop.Workshop, f *compose.Facts) {
	var names []string
	for i := range w.Workers {
		if w.Workers[i].Container.GitAuthor.V == workshop.GitAuthorHost {
			names = append(names, w.Workers[i].Name)
		}
	}
	if len(names) > 0 {
		env.say("%s: git commits as %s, of your git configuration (B45)", WorkersText(names), Printable(f.GitAuthor.AuthorName+" <"+f.GitAuthor.AuthorEmail+">"))
	}
}

// sayRepositories says which repositories outside of the mounts workers see, since their
// worktrees or submodules are mounted, and where git doesn't work.
func (env *Env) sayRepositories(w *workshop.Workshop, f *compose.Facts) {
	said := map[string]bool{}
	once := func(say func(string, ...any), format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !said[text] {
			said[text] = true
			say("%s", text)
		}
	}
	for i := range w.Workers {
		for _, l := range f.LinkedMounts(&w.Workers[i].Container) {
			what := "directory" // of which nothing is proved
			switch {
			case l.Own != "":
				what = "worktree"
			case l.Worktree != "":
				what = "submodule"
			}
			where := "this " + what
			if l.Dir != "." || l.Mount.Source.V != "." && l.Mount.Source.V != "./" {
				where = "the " + what + " " + Printable(filepath.Join(l.Mount.Source.V, l.Dir))
			}
			why := l.Unusable
			switch {
			case why != "":
				hint := ""
				if l.Hint != "" {
					hint = "; " + l.Hint
				}
				once(env.warn, "git doesn't work in %s: %s%s", where, Printable(why), Printable(hint))
			case l.Writable:
				once(env.say, "the repository of %s is at %s: git can write, but not its hooks and config; other branches can be seen and changed", where, Printable(l.Real))
			default:
				once(env.say, "the repository of %s is at %s: read-only; other branches can be seen", where, Printable(l.Real))
			}
		}
	}
}

// sayLeads says where links lead from a source: the workshop file doesn't show it.
func (env *Env) sayLeads(dir, source, real string) {
	written := filepath.Clean(source)
	if !filepath.IsAbs(written) {
		written = filepath.Join(dir, written)
	}
	if real != "" && real != written {
		env.warn("the source %s is a symbolic link, or below one: %s is mounted", Printable(source), Printable(real))
	}
}

// ProtectedText names the directories that are read-only below a source. Under
// `git: rw` those are the hooks of git directories, not the rest of them.
func ProtectedText(w *workshop.Workshop, source string, dirs []compose.Protected) string {
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

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// recordsDir has the records of what is up; "" without a home directory.
func (env *Env) recordsDir() string { return recordsIn(env.StateDir()) }

// recordsIn is the directory of records in a state directory.
func recordsIn(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "projects")
}

// Record is what was noted of a project when it was brought up; nil for nothing.
func (env *Env) Record(project string) (*facts.Record, error) {
	return facts.LoadRecord(env.recordsDir(), project)
}

// Watch notes what the watched files (B8) are before anything starts. What was
// noted by an `up` before stays until `down`, or until the caller takes what
// changed since: a worker may have changed it, and stopped the workshop then. That
// is said first, and what can't be checked. strict refuses both; an `up` that
// nobody asked for refuses what changed. A dry run only says it, and notes nothing.
func (env *Env) Watch(ctx context.Context, ready *Project, contained bool, o UpOptions) error {
	if env.recordsDir() == "" {
		return Fail(CodeFailed, "no directory to note what is brought up in (B8): neither HOME nor XDG_STATE_HOME is set")
	}
	r := facts.NewRecord(env.recordsDir(), ready.Compiled, env.Settings.Project == "" && ready.run == nil && ready.modelOf == "", contained)
	r.ModelOf, r.Place = ready.modelOf, ready.place
	texts := ready.definition()
	if r.OneOff = ready.run != nil; ready.flags {
		r.Own = env.ownFiles(ctx, r)
	}
	r.Definition, r.Absent = texts.Known, texts.Absent
	for _, f := range env.Settings.EnvFiles {
		f = env.Abs(f)
		r.Own = append(r.Own, filepath.Join(RealPath(filepath.Dir(f)), filepath.Base(f)))
	}
	before, err := env.Record(ready.Name)
	if err != nil {
		return Fail(CodeFailed, "%w", err).Hint("`workshop -p %s down` compares what it can, and removes it", ready.Name)
	}
	if before != nil && before.Down && before.Dir != r.Dir && Exists(before.Dir) {
		before = nil // nothing is left to accept there: see [Env.CheckDirectory]
	}
	var baseline facts.Snapshot
	lost := before != nil && before.Dir != r.Dir // that is gone: see [Env.CheckDirectory]
	switch {
	case lost:
		env.warn("project %s was brought up from %s, which is gone: what its workers wrote can't be compared (B8)", ready.Name, Printable(before.Dir))
	case before != nil:
		if baseline, err = before.Baseline(); err != nil {
			return Fail(CodeFailed, "watched files (B8): %w", err).Hint("`workshop -p %s down` ends it, and forgets the rest", ready.Name)
		}
		r = before.With(r)
	}
	now, err := r.Take(ctx, env.Home, env.Lookup)
	if err != nil {
		return Fail(CodeFailed, "watched files (B8): %w", err)
	}
	ends := now.Pin(texts.Raw) // what is obeyed is noted, and nothing that came later
	if baseline == nil {
		baseline = now
	} else {
		baseline = before.Extend(baseline, now)
	}
	changes := r.Changes(baseline, now)
	if ready.NotChecked { // was said of the source
		changes = slices.DeleteFunc(changes, func(c facts.Change) bool { return c.Kind == facts.NotChecked })
	}
	accepted := ready.Name
	if before == nil || lost {
		accepted = ""
	}
	redefined, err := env.redefined(accepted, texts)
	if err != nil {
		return err
	}
	env.sayChanges(slices.DeleteFunc(slices.Clone(changes), func(c facts.Change) bool { // those are named with the definition
		return slices.ContainsFunc(redefined, func(d facts.Redefinition) bool { return d.Path == c.Path || ends[d.Path] == c.Path })
	}), r.Since())
	if err := env.reviewDefinition(ctx, ready, redefined, texts, o); err != nil {
		return err
	}
	var paths, led []string
	for _, d := range redefined {
		if paths = append(paths, d.Path); texts.Raw[d.Path] == nil {
			delete(r.Definition, d.Path)
		}
		if end, ok := ends[d.Path]; ok {
			led = append(led, end)
		}
	}
	changes = r.Accept(slices.Concat(paths, led), baseline, now, changes)
	if o.AcceptWatched == AcceptAll {
		r.Accept(slices.Collect(maps.Keys(now)), baseline, now, nil)
		baseline, r.Accepted = now, true
		changes = slices.DeleteFunc(changes, func(c facts.Change) bool { return c.Kind != facts.NotChecked })
	}
	written := slices.DeleteFunc(slices.Clone(changes), func(c facts.Change) bool { return !c.Written() })
	missed := 0 // not compared, as far as it counts
	if lost {
		missed++
	}
	if o.Strict {
		missed += len(changes) - len(written)
	}
	refused := Fail(CodeRefused, "watched files (B8): %s; nothing was started", findingsText(len(written), missed, r.Since()))
	switch {
	case len(written)+missed == 0:
	case o.Strict && len(written) > 0:
		return refused.Hint("look at the named files; `workshop up --accept-watched` accepts them as they are")
	case o.Strict:
		return refused.Hint("look at what is named; `workshop up` starts without comparing it")
	case o.Implicit:
		return refused.Hint("`workshop ps` names them; `workshop up` starts the workers anyway, `workshop up --accept-watched` also accepts the files as they are")
	case len(written) > 0:
		env.hint("review them: they are listed until `workshop up --accept-watched` accepts them")
	}
	if o.DryRun {
		return nil
	}
	if !o.Implicit { // else nobody may have read what was replaced
		r.Renew()
	}
	if err := r.Keep(baseline); err != nil {
		return err
	}
	others, unlock := env.recordsOf(ctx, ready.Name, paths)
	defer unlock()
	for _, other := range others {
		if err := other.Note(paths, texts); err != nil {
			return err
		}
	}
	return nil
}

// recordsOf returns the records of other projects that concern one of the files, locked.
// One that another command works on, by which the file stays changed, is named.
func (env *Env) recordsOf(ctx context.Context, project string, files []string) (others []*facts.Record, unlock func()) {
	var locks []func()
	unlock = func() {
		for _, f := range locks {
			f()
		}
	}
	if len(files) == 0 {
		return nil, unlock
	}
	all, err := facts.Records(env.recordsDir())
	if err != nil {
		env.warn("what is accepted isn't noted for all projects: %v", err)
	}
	for _, r := range all {
		if r.Project == project || !slices.ContainsFunc(files, r.Concerns) {
			continue
		}
		free := env.briefly(ctx, r.Project)
		if free == nil {
			env.warn("another workshop command works on project %s: what is accepted isn't noted there (B8)", r.Project)
			continue
		}
		locks = append(locks, free)
		if r, err = env.Record(r.Project); err == nil && r != nil { // as it is by now
			others = append(others, r)
		}
	}
	return others, unlock
}

// findingsText counts what changed since an `up`, and what can't be compared.
func findingsText(changes, missed int, since string) string {
	var parts []string
	if changes > 0 {
		parts = append(parts, Count(changes, "change")+" since "+since)
	}
	if missed > 0 {
		parts = append(parts, Count(missed, "place")+" not fully compared")
	}
	return WorkersText(parts)
}

// CompareWatched names what changed since the first `up`, loudly, and reports whether
// anything did. What can't be compared counts as changed. It uses what `up`
// noted, not by the files of the project, which a worker may have changed.
func (env *Env) CompareWatched(ctx context.Context, project string, seen engine.Observed) bool {
	changes, since, err := env.changes(ctx, project, seen)
	if err != nil {
		env.warn("watched files (B8) can't be compared: %v", err)
		env.hint("look at what workers could write before a program here runs or obeys it: git's configuration and hooks, .envrc, editor settings")
		return true
	}
	env.sayChanges(changes, since)
	return len(changes) > 0
}

// changes returns what changed, and since which `up`.
func (env *Env) changes(ctx context.Context, project string, seen engine.Observed) (changes []facts.Change, since string, err error) {
	r, err := env.Record(project)
	if err != nil {
		return nil, "", err
	}
	if r == nil {
		if len(seen.Containers) > 0 {
			err = fmt.Errorf("project %s is up, and nothing was noted of its `up` in %s", project, env.recordsDir())
		}
		return nil, "", err
	}
	before, err := r.Baseline()
	if err != nil {
		return nil, "", err
	}
	now, err := r.Take(ctx, env.Home, env.Lookup)
	if err != nil {
		return nil, "", err
	}
	return r.Changes(before, now), r.Since(), nil
}

// maxChanges are named one by one: a worker can make any number of them.
const maxChanges = 100

// sayChanges names changes since an `up`.
func (env *Env) sayChanges(changes []facts.Change, since string) {
	var written, removed, missed, replaced bool
	var files map[string]int // of directories
	for _, c := range changes {
		switch c.Kind {
		case facts.NotChecked:
			missed = true
		case facts.Replaced:
			replaced = true
		case facts.Removed:
			removed = true
		default:
			written = true
		}
	}
	if !env.Verbose {
		changes, files = byDirectory(changes)
	}
	shown := changes
	if !env.Verbose && len(changes) > maxChanges {
		shown = firstOfEach(changes)[:maxChanges]
	}
	for _, c := range shown {
		what := env.shownClipped(c.Path)
		if n := files[c.Path]; n > 0 {
			what += " (" + Count(n, "file") + ")"
		}
		switch {
		case c.Kind == facts.NotChecked:
			env.warn("not fully checked: %s: %s (B8)", what, Printable(c.Why))
		case c.Kind == facts.Replaced:
			env.warn("%s: %s: what workers wrote there before isn't compared (B8)", c.Kind, what)
		case c.Kind == facts.Named:
			env.warn("named by %s now: %s (B8)", env.shownClipped(c.Why), what)
		default:
			env.warn("%s since %s: %s (B8)", c.Kind, since, what)
		}
	}
	if n := len(changes) - len(shown); n > 0 {
		env.warn("and %d more; --verbose names them all (B8)", n)
	}
	more := ""
	if len(files) > 0 {
		more = "; --verbose names each file"
	}
	switch {
	case written:
		env.hint("a worker may have written this; look at it before a program here runs or obeys it%s", more)
	case removed:
		env.hint("a worker may have removed this; restore it if a program here needs it%s", more)
	}
	if replaced {
		env.hint("if the former one still exists, look at it before a program here runs or obeys what is in it")
	}
	if missed {
		env.hint("review or remove it: what git, a shell or an editor would run there is not known")
	}
}

// byDirectory leaves out the files of directories that are new, named or removed as a
// whole, such as those of a new git directory, and counts them. What counts in any directory
// stays.
func byDirectory(changes []facts.Change) (out []facts.Change, files map[string]int) {
	whole := map[string]facts.ChangeKind{}
	for _, c := range changes {
		if c.Kind == facts.New || c.Kind == facts.Removed || c.Kind == facts.Named {
			whole[c.Path] = c.Kind
		}
	}
	above := func(c facts.Change) string {
		for dir := filepath.Dir(c.Path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if kind := whole[dir]; kind != "" && kind == c.Kind {
				return dir
			}
		}
		return ""
	}
	dirs := map[string]bool{}
	for _, c := range changes {
		dirs[above(c)] = true
	}
	in := func(c facts.Change) string {
		if dirs[c.Path] || facts.Watched(filepath.Base(c.Path)) {
			return ""
		}
		return above(c)
	}
	files = map[string]int{}
	for _, c := range changes {
		if dir := in(c); dir != "" {
			files[dir]++
		}
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c facts.Change) bool { return files[in(c)] > 0 }), files
}

// firstOfEach puts the changes first that thousands of others are made to hide: the
// first of each kind and name of a file or reason, and of all others what was there at `up`
// before what is new.
func firstOfEach(changes []facts.Change) []facts.Change {
	rank := map[facts.ChangeKind]int{facts.Changed: 1, facts.Removed: 2, facts.NotChecked: 3, facts.New: 4}
	at, seen := map[string]int{}, map[string]bool{}
	for _, c := range changes {
		at[c.Path] = rank[c.Kind]
		like := string(c.Kind) + " " + filepath.Base(c.Path)
		if c.Kind == facts.NotChecked {
			like = c.Why // the name may be any
		}
		if !seen[like] {
			seen[like], at[c.Path] = true, at[c.Path]-len(rank)
		}
	}
	out := slices.Clone(changes)
	sortfunc.Stable(out, func(x, y facts.Change) int { return at[x.Path] - at[y.Path] })
	return out
}

func (env *Env) shownClipped(path string) string {
	return Printable(facts.ClipPath(env.Shown(filepath.FromSlash(path))))
}

// forgetSecrets removes what `up` left in runtime directories, secrets and names, and the key
// of a model's room. seen is what was up.
func (env *Env) forgetSecrets(t ProjectRef, r *facts.Record, seen engine.Observed) error {
	dirs := []string{t.Dir}
	for _, c := range seen.Containers {
		dirs = append(dirs, c.Directory)
	}
	var kept []string
	if r != nil {
		dirs, kept = append(dirs, r.Dir), append(kept, r.RuntimeDir)
	}
	slices.Sort(dirs)
	dirs = slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool { return dir == "" })
	if len(dirs) == 0 && len(seen.Containers) > 0 {
		return Fail(CodeFailed, "secrets of project %s may be left: nothing tells the directory that it was brought up from (B11)", t.Name).
			Hint("look for directories %s-* in $XDG_RUNTIME_DIR/workshop, /dev/shm/workshop-%d and ~/.cache/workshop/run, and remove them", t.Name, os.Getuid())
	}
	for _, dir := range dirs {
		kept = append(kept, facts.RuntimeDirs(t.Name, dir, os.Getuid(), env.Lookup, env.Home)...)
	}
	for _, dir := range kept {
		if dir != "" {
			stopBroker(context.Background(), dir)
		}
	}
	return errors.Join(facts.Forget(kept, os.Getuid()), env.forgetModelKey(t.Name))
}

// forget is forgetSecrets with the record. What changed is kept in mind, so that `down`
// accepts nothing.
func (env *Env) forget(t ProjectRef, seen engine.Observed, changed bool) error {
	r, _ := env.Record(t.Name) // CompareWatched has said what is wrong with it
	err := env.forgetSecrets(t, r, seen)
	if r == nil || !changed || !Exists(r.Dir) {
		return errors.Join(err, facts.ForgetRecord(env.recordsDir(), t.Name))
	}
	r.Down, r.Place = true, nil
	env.hint("review them: they are listed until `workshop up --accept-watched` or `workshop down --accept-watched` accepts them")
	return errors.Join(err, r.Save())
}

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// watch stores what the watched files (B8) are before anything starts. A
// workshop that is up already may have changed some: that is said first, and
// what can't be checked. strict refuses both.
func (a *app) watch(ctx context.Context, ready *compiled, strict bool) error {
	dir := ready.compiled.Facts.RuntimeDir
	if dir == "" {
		return nil // an engine elsewhere has no writable mounts of ours
	}
	now, err := facts.TakeSnapshot(ctx, ready.compiled, a.Home)
	if err != nil {
		return fail(codeFailed, "watched files (B8): %w", err)
	}
	before, err := facts.LoadSnapshot(dir)
	if err != nil {
		a.warn("watched files (B8): %v", err)
	}
	changes := now.NotChecked()
	if before != nil {
		changes = before.Compare(now)
	}
	if ready.notChecked { // was said of the source
		changes = slices.DeleteFunc(changes, func(c facts.Change) bool { return c.Kind == facts.NotChecked })
	}
	a.printChanges(changes)
	if strict && len(changes) > 0 {
		return fail(codeRefused, "watched files (B8): %s; nothing was started", count(len(changes), "finding"))
	}
	if a.set.project == "" { // what the directory says then must not change in silence
		if err := facts.KeepOwnName(dir, ready.compiled); err != nil {
			return err
		}
	}
	return now.Save(dir)
}

// compareWatched names what changed since `up`, loudly, and reports whether
// anything did. What can't be compared counts as changed.
func (a *app) compareWatched(ctx context.Context, t target, e engine.Engine) bool {
	if t.file == "" {
		return false
	}
	before, err := a.stored(t)
	if err != nil {
		a.warn("watched files (B8) can't be compared: %v", err)
		return true
	}
	if before == nil {
		return false
	}
	now, err := a.snapshot(ctx, t, e)
	if err != nil {
		a.warn("watched files (B8) can't be compared: %v", err)
		return true
	}
	changes := before.Compare(now)
	a.printChanges(changes)
	return len(changes) > 0
}

// stored is the snapshot of `up`; nil if there is none.
func (a *app) stored(t target) (facts.Snapshot, error) {
	for _, dir := range facts.RuntimeDirs(t.project, t.dir, os.Getuid(), a.Lookup, a.Home) {
		if s, err := facts.LoadSnapshot(dir); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// snapshot looks at the files as they are now.
func (a *app) snapshot(ctx context.Context, t target, e engine.Engine) (facts.Snapshot, error) {
	s, err := a.readSource(t.file)
	if err != nil {
		return nil, err
	}
	if s.w == nil {
		return nil, errors.New(a.shown(t.file) + " is invalid now; `workshop validate` says why")
	}
	c, err := compileWorkshop(s.w)
	if err != nil {
		return nil, err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return nil, err
	}
	whole := &compiled{source: s, project: t.project, compiled: c}
	// What stands against a start does not matter here.
	o := a.factsOptions(whole, info)
	o.SkipContents = true
	ready, _ := withFacts(ctx, whole, o)
	return facts.TakeSnapshot(ctx, ready.compiled, a.Home)
}

// maxChanges are named one by one: a worker can make any number of them.
const maxChanges = 100

func (a *app) printChanges(changes []facts.Change) {
	var written, missed bool
	shown := changes
	if !a.set.verbose && len(changes) > maxChanges {
		shown = firstOfEach(changes)[:maxChanges]
	}
	for _, c := range changes {
		written, missed = written || c.Kind != facts.NotChecked, missed || c.Kind == facts.NotChecked
	}
	for _, c := range shown {
		if c.Kind == facts.NotChecked {
			a.warn("not fully checked: %s: %s (B8)", a.shownClipped(c.Path), printable(c.Why))
		} else {
			a.warn("%s since `up`: %s (B8)", c.Kind, a.shownClipped(c.Path))
		}
	}
	if n := len(changes) - len(shown); n > 0 {
		a.warn("and %d more; --verbose names them all (B8)", n)
	}
	if written {
		a.printFailure((&failure{}).hint("a worker may have written this; look at it before a program here runs or obeys it"))
	}
	if missed {
		a.printFailure((&failure{}).hint("look at what lies there, or remove it: what git, a shell or an editor would run there is not known"))
	}
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
	slices.SortStableFunc(out, func(x, y facts.Change) int { return at[x.Path] - at[y.Path] })
	return out
}

func (a *app) shownClipped(path string) string {
	return printable(facts.ClipPath(a.shown(filepath.FromSlash(path))))
}

// forget removes what `up` left in the runtime directory: secrets, names and
// the snapshot.
func (a *app) forget(t target) error {
	if t.dir == "" {
		return nil
	}
	return facts.Forget(t.project, t.dir, os.Getuid(), a.Lookup, a.Home)
}

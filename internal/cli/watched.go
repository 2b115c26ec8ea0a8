package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// watch stores what the watched files (B8) are before anything starts. A
// workshop that is up already may have changed some: that is said first.
func (a *app) watch(ctx context.Context, ready *compiled) error {
	dir := ready.compiled.Facts.RuntimeDir
	if dir == "" {
		return nil // an engine elsewhere has no writable mounts of ours
	}
	now, err := facts.TakeSnapshot(ctx, ready.compiled)
	if err != nil {
		return fail(codeFailed, "watched files (B8): %w", err)
	}
	before, err := facts.LoadSnapshot(dir)
	if err != nil {
		a.warn("watched files (B8): %v", err)
	}
	if before != nil {
		a.printChanges(before.Compare(now))
	}
	return now.Save(dir)
}

// compareWatched names what changed since `up`, loudly, and tells whether
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
	o.SkipCopies = true
	ready, _ := withFacts(ctx, whole, o)
	return facts.TakeSnapshot(ctx, ready.compiled)
}

func (a *app) printChanges(changes []facts.Change) {
	for _, c := range changes {
		a.warn("%s since `up`: %s (B8)", c.Kind, printable(a.shown(filepath.FromSlash(c.Path))))
	}
	if len(changes) > 0 {
		a.printFailure((&failure{}).hint("a worker may have written this; look at it before a program here runs or obeys it"))
	}
}

// forget removes what `up` left in the runtime directory: secrets, names and
// the snapshot.
func (a *app) forget(t target) error {
	if t.dir == "" {
		return nil
	}
	return facts.Forget(t.project, t.dir, os.Getuid(), a.Lookup, a.Home)
}

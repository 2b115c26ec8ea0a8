package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lock"
)

// LockOptions say how a lock is written.
type LockOptions struct {
	// Upgrade looks up images and sources again that are locked.
	Upgrade bool
	// Sources are looked up again, by their IDs, or all of them.
	Sources    []string
	AllSources bool
	// DryRun writes nothing, and asks for no agreement to what was looked up.
	DryRun bool
	// Offline asks no registry, and no source.
	Offline bool
	// Yes agrees to sources that the settings allow.
	Yes bool
	// Ask puts a yes-or-no question to a person; nil if nobody is there.
	Ask func(context.Context, string) (bool, error)
}

// LockResult is what was found or written.
type LockResult struct {
	// File is the lock's name as the user would write it.
	File string
	// Changed reports whether it was written, New whether there was none that could be
	// read.
	Changed, New bool
	// Differences from the lock that was there.
	Differences []lock.Difference
	// Newer are releases that the versions of the files don't allow.
	Newer []NewerRelease
	// Refused says why releases weren't taken; of a dry run alone, else it is the error.
	Refused error
}

// NewerRelease is a release of a source that wasn't taken.
type NewerRelease struct {
	ID, Tag string
	Allowed string // the version as a file has it
}

// CheckedLock compares the workshop with its lock. No engine, network or variable is
// asked.
func (env *Env) CheckedLock(ctx context.Context) (LockResult, error) {
	s, err := env.loadForLock(ctx)
	if err != nil {
		return LockResult{}, err
	}
	r := LockResult{File: env.Shown(s.lockFile())}
	if s.lock == nil {
		return r, Fail(CodeInvalid, "there is no %s", r.File).Hint("run `workshop lock`, and commit the file")
	}
	r.Differences, err = s.compareLock(ctx)
	return r, err
}

func (env *Env) loadForLock(ctx context.Context) (*Source, error) {
	s, err := env.readForLock(ctx)
	if err != nil {
		return nil, err
	}
	return s, env.loaded(s)
}

func (env *Env) readForLock(ctx context.Context) (*Source, error) {
	file, err := env.FindFile()
	if err != nil {
		return nil, err
	}
	return env.readResolved(ctx, file, reading{symbols: true})
}

// loadNewest is loadForLock where sources are looked up. refused says of newer releases why
// they aren't taken.
func (env *Env) loadNewest(ctx context.Context) (s *Source, refused, err error) {
	if s, err = env.readForLock(ctx); err != nil {
		return nil, nil, err
	}
	if s.Workshop == nil {
		good, all, err := env.withoutRefused(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if len(all) > 0 {
			s, refused = good, refusedReleases(all)
		}
	}
	return s, refused, env.loaded(s)
}

// readResolved reads a file as often as the choice of its sources wants it.
func (env *Env) readResolved(ctx context.Context, file string, how reading) (*Source, error) {
	s, err := env.read(ctx, file, how)
	for err == nil && env.resolver != nil && env.resolver.again {
		env.resolver.again = false
		s, err = env.read(ctx, file, how)
	}
	return s, err
}

// Lock writes the lock of the workshop. Images that are locked stay as they are, also those
// on which both sides of a merge agree; a lock that can't be read is written anew.
func (env *Env) Lock(ctx context.Context, o LockOptions) (LockResult, error) {
	env.RepairLock, env.Offline = true, o.Offline
	env.fetches, env.resolver = true, newResolver(func(id string) bool { return o.Upgrade || o.AllSources || slices.Contains(o.Sources, id) }, o.Yes)
	defer func() { env.fetches, env.resolver = false, nil }()
	s, refused, err := env.loadNewest(ctx)
	if err != nil || refused != nil && !o.DryRun {
		return LockResult{}, cmp.Or(err, refused)
	}
	r := LockResult{File: env.Shown(s.lockFile()), Refused: refused}
	name, err := env.projectName(s.Workshop.Name.V, s.Root())
	if err != nil {
		return r, err
	}
	p := &Project{ProjectRef: ProjectRef{Name: name, Dir: RealPath(s.Root()), File: s.Path}, Source: s}
	if err := env.ReviewDefinition(ctx, p, o.Ask); err != nil {
		return r, err
	}
	if err := env.knownSources(s, o.Sources); err != nil {
		return r, err
	}
	if !o.DryRun {
		if err := s.from.acceptChosen(ctx, s.Workshop); err != nil {
			return r, err
		}
	}
	for _, problem := range s.lockProblems {
		if s.lock == nil {
			env.warn("%s was not read, and all images and sources are looked up: %s", r.File, problem.Summary)
		} else {
			env.warn("%s: images and sources on which its sides agree stay, all others are looked up", problem.Summary)
		}
	}
	before, known := s.lock, s.lock
	if len(s.lockProblems) > 0 {
		before = lock.Ours(s.lockText) // so that what a merge changes is shown
	}
	if r.New = before == nil; r.New {
		before = lock.Empty()
	}
	if o.Upgrade || known == nil {
		known = lock.Empty()
	}
	now, w, err := s.newLock(ctx, known)
	if err != nil {
		return r, err
	}
	for _, image := range now.Unresolved() {
		if _, locked := known.Images[image]; locked {
			continue
		}
		if now.Images[image], err = env.resolveImage(ctx, p.ProjectRef, image, o); err != nil {
			return r, err
		}
	}
	s.describe(now, w)
	r.Differences = lock.Compare(before, now)
	for _, u := range s.Workshop.Sources {
		if o := s.from.opened[u.ID]; o.Newer != "" {
			r.Newer = append(r.Newer, NewerRelease{ID: u.ID, Tag: o.Newer, Allowed: o.Original})
		}
	}
	text := now.Render()
	if bytes.Equal(text, s.lockText) {
		return r, nil
	}
	if r.Changed = true; o.DryRun {
		return r, nil
	}
	if err := env.writeLock(ctx, s, text); err != nil {
		return r, err
	}
	env.sayVendored(s)
	return r, nil
}

// writeLock writes the lock for whom the workshop file belongs to.
func (env *Env) writeLock(ctx context.Context, s *Source, text []byte) error {
	info, err := os.Stat(s.Path)
	if err != nil {
		return err
	}
	write := atomicfile.File{
		Name: s.lockFile(), Data: text, Mode: 0o644, Prepare: func(f *os.File) error { return keepOwner(f, info) },
	}.Write
	return env.replaceWatched(ctx, s, filepath.Base(s.lockFile()), s.lockText, text, write)
}

// resolveImage asks the registry, and where that has no answer the engine: an image that
// was built or loaded there by hand is on no other machine.
func (env *Env) resolveImage(ctx context.Context, t ProjectRef, name string, o LockOptions) (lock.Image, error) {
	ref, err := reference.Parse(name)
	if err != nil {
		return lock.Image{}, Fail(CodeInvalid, "%w", err)
	}
	asked := errors.New("no registry is asked with --offline")
	if !o.Offline {
		found, err := image.LookUp(ctx, ref, env.Lookup)
		if err == nil {
			return lock.Image{Digest: found.Digest, Platforms: found.Platforms}, nil
		}
		if ctx.Err() != nil {
			return lock.Image{}, context.Cause(ctx)
		}
		asked = err
	}
	digests, there := env.imageOnEngine(ctx, t, name)
	switch {
	case !there:
		return lock.Image{}, Fail(CodeFailed, "image %s can't be locked: %w", name, asked).
			Hint("build or load it on the engine, or lock it where its registry can be reached")
	case len(digests) == 0:
		env.warn("image %s is on this engine and in no registry: it isn't pinned, and each machine runs its own", name)
		return lock.Image{}, nil
	}
	_, digest, _ := strings.Cut(digests[0], "@")
	env.warn("image %s is locked as this engine has it: %v", name, asked)
	return lock.Image{Digest: digest}, nil
}

// imageOnEngine looks an image up on the engine, if one answers that has images of a
// user's own.
func (env *Env) imageOnEngine(ctx context.Context, t ProjectRef, name string) (digests []string, there bool) {
	r, err := env.Connect(ctx, t, nil)
	if err != nil {
		return nil, false
	}
	defer r.Close()
	seen, err := r.Observe(ctx, t.Name, name)
	if err != nil {
		return nil, false
	}
	digests, there = seen.Digests[name]
	return digests, there
}

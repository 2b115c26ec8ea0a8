package app

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lock"
)

// LockOptions say how a lock is written.
type LockOptions struct {
	// Upgrade looks up images again that are locked.
	Upgrade bool
	// Offline asks no registry.
	Offline bool
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
}

// CheckedLock compares the workshop with its lock. No engine and no network is asked.
func (env *Env) CheckedLock(ctx context.Context) (LockResult, error) {
	c, err := env.Compile(ctx)
	if err != nil {
		return LockResult{}, err
	}
	r := LockResult{File: env.Shown(c.lockFile())}
	if c.lock == nil {
		return r, Fail(CodeInvalid, "there is no %s", r.File).Hint("run `workshop lock`, and commit the file")
	}
	now, err := env.newLock(ctx, c)
	if err != nil {
		return r, err
	}
	now.Take(c.lock)
	now.Describe(c.Workshop)
	r.Differences = lock.Compare(c.lock, now)
	if len(r.Differences) == 0 && !bytes.Equal(c.lockText, now.Render()) {
		return r, Fail(CodeInvalid, "%s is not as `workshop lock` writes it", r.File).Hint("run `workshop lock`")
	}
	return r, nil
}

// Lock writes the lock of the workshop. Images that are locked stay as they are; a lock
// that can't be read, as after a merge, is written anew.
func (env *Env) Lock(ctx context.Context, o LockOptions) (LockResult, error) {
	env.RepairLock = true
	c, err := env.Compile(ctx)
	if err != nil {
		return LockResult{}, err
	}
	r := LockResult{File: env.Shown(c.lockFile())}
	if err := env.ReviewDefinition(ctx, c, o.Ask); err != nil {
		return r, err
	}
	for _, problem := range c.lockProblems {
		env.warn("%s was not read, and all images are looked up: %s", r.File, problem.Summary)
	}
	before := c.lock
	if r.New = before == nil; r.New {
		before = lock.Empty()
	}
	now, err := env.newLock(ctx, c)
	if err != nil {
		return r, err
	}
	if !o.Upgrade {
		now.Take(before)
	}
	if err := env.resolveImages(ctx, c, now, before, o); err != nil {
		return r, err
	}
	now.Describe(c.Workshop)
	r.Differences = lock.Compare(before, now)
	text := now.Render()
	if bytes.Equal(text, c.lockText) {
		return r, nil
	}
	r.Changed = true
	return r, atomicfile.Write(c.lockFile(), text, 0o644)
}

// resolveImages looks up the images of which the lock knows no digest yet.
func (env *Env) resolveImages(ctx context.Context, c *Project, now, before *lock.Lock, o LockOptions) error {
	names := now.Unresolved()
	if !o.Upgrade {
		names = slices.DeleteFunc(names, func(name string) bool { _, known := before.Images[name]; return known })
	}
	for _, name := range names {
		img, err := env.resolveImage(ctx, c, name, o)
		if err != nil {
			return err
		}
		now.Images[name] = img
	}
	return nil
}

// resolveImage asks the registry, and where that has no answer the engine: an image that
// was built or loaded there by hand is on no other machine.
func (env *Env) resolveImage(ctx context.Context, c *Project, name string, o LockOptions) (lock.Image, error) {
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
	digests, there := env.imageOnEngine(ctx, c, name)
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
func (env *Env) imageOnEngine(ctx context.Context, c *Project, name string) (digests []string, there bool) {
	r, err := env.Connect(ctx, c.ProjectRef, nil)
	if err != nil {
		return nil, false
	}
	defer r.Close()
	seen, err := r.Observe(ctx, c.Name, name)
	if err != nil {
		return nil, false
	}
	digests, there = seen.Digests[name]
	return digests, there
}

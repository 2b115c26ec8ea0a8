package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/workshop"
)

// readLock reads the lock of the file. What is wrong with it is a problem like those of
// the file: it is never taken for none. Where it is about to be repaired, what both sides of
// a merge agree on stays.
func (s *Source) readLock(fsys fs.FS, repair bool) {
	name := lock.FileOf(s.Base())
	text, err := lock.Read(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.lockProblems = diag.List{{Severity: diag.Error, Code: "bad-lock", Range: diag.Range{Filename: name},
			Summary: "the lock can't be read: " + boundedfile.Reason(err), Hint: lock.Hint}}
		return
	}
	s.lockText = text
	if s.lock, s.lockProblems = lock.Parse(name, text); s.lock == nil && repair {
		s.lock = lock.Agreed(text)
	}
}

// lockFile is the absolute path of the lock.
func (s *Source) lockFile() string { return filepath.Join(s.Root(), lock.FileOf(s.Base())) }

// compiledFiles are the texts that the workshop was loaded from, but not those of
// variables: they are the machine's.
func (s *Source) compiledFiles() map[string][]byte {
	out := map[string][]byte{}
	for name, k := range s.read {
		if !slices.Contains(s.variables, name) && name != lock.FileOf(s.Base()) {
			out[path.Clean(name)] = k.text
		}
	}
	return out
}

// pinned is the workshop with its images as they are locked.
func (s *Source) pinned() *workshop.Workshop {
	if s.lock == nil {
		return s.Workshop
	}
	return s.lock.Pin(s.Workshop)
}

// symbolic is the workshop as it is whatever the variables are, from the same texts.
func (s *Source) symbolic(ctx context.Context) (*workshop.Workshop, error) {
	if !bytes.ContainsRune(s.text(), '$') {
		return s.Workshop, nil
	}
	fsys := projectFS{dir: s.Root(), named: s.named, read: s.read}
	o := workshop.Options{Symbols: true, Root: filepath.ToSlash(s.Root()), FollowFile: true}
	if s.from != nil {
		o.OpenSource = s.from.open
	}
	w, list := workshop.Load(ctx, fsys, s.Base(), o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if w == nil {
		return nil, Fail(CodeInvalid, "%s can't be compared with its lock: %s", s.Base(), list[0].Summary)
	}
	return w, nil
}

// newLock is the lock that a workshop would have, as far as files and what was looked up
// before say it.
func (s *Source) newLock(ctx context.Context, before *lock.Lock) (*lock.Lock, *workshop.Workshop, error) {
	w, err := s.symbolic(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := lock.New(w, s.compiledFiles())
	for _, used := range w.Sources {
		l.Sources[used.ID] = s.from.lockedAs(used)
	}
	root := RealPath(s.Root())
	for name, img := range l.Images {
		ref, inFiles := lock.InFiles(name)
		if !inFiles {
			continue
		}
		if img.Digest, err = image.ContentHash(ctx, ref.In(filepath.ToSlash(root))); err != nil {
			return nil, nil, Fail(CodeInvalid, "image %s can't be locked: %w", name, err)
		}
		l.Images[name] = img
	}
	for i := range w.Workers {
		b := w.Workers[i].Container.Build
		if b == nil || !l.MustHash(b) {
			continue
		}
		dir := filepath.FromSlash(b.Context.V)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		hash, err := docker.ContentHash(ctx, dir, cmp.Or(b.Dockerfile.V, "Dockerfile"))
		if err != nil {
			return nil, nil, Fail(CodeInvalid, "build of %s: %w", w.Workers[i].Name, err)
		}
		l.Builds[lock.BuildName(b)] = hash
	}
	l.Take(before)
	return l, w, nil
}

// compareLock returns in what the lock differs from the one that `workshop lock` would
// write.
func (s *Source) compareLock(ctx context.Context) ([]lock.Difference, error) {
	now, w, err := s.newLock(ctx, s.lock)
	if err != nil {
		return nil, err
	}
	s.describe(now, w)
	return lock.Check(s.lockText, s.lock, now), nil
}

// describe puts the grants into a lock, and where a link of the project leads a mount to
// another part of it: no text of a file says that.
func (s *Source) describe(l *lock.Lock, w *workshop.Workshop) {
	l.Describe(w)
	root, links := RealPath(s.Root()), map[string]bool{}
	for i := range w.Workers {
		for _, m := range w.Workers[i].Container.Mounts {
			source := filepath.FromSlash(m.Source.V)
			if m.Source.Source.Template != "" || filepath.IsAbs(source) {
				continue
			}
			to, err := filepath.Rel(root, RealPath(filepath.Join(root, source)))
			if err == nil && filepath.IsLocal(to) && to != filepath.Clean(source) {
				links[fmt.Sprintf("%s link %s to %s", grant.Everyone, shellquote.Quote(m.Source.V), shellquote.Quote("./"+filepath.ToSlash(to)))] = true
			}
		}
	}
	l.Can = append(l.Can, slices.Sorted(maps.Keys(links))...)
}

// frozen reports whether what runs must be what the lock says: the caller asks for it,
// or this is continuous integration and there is a lock.
func (env *Env) frozen(s *Source) bool {
	if f := env.Settings.Frozen; f != nil {
		return *f
	}
	return s.lock != nil && env.inCI() != ""
}

// CheckLock refuses a workshop that isn't what its lock says (B46): where that must be so
// ([Settings.Frozen]) in any way, else where an image or a source differs. Of other
// differences the grants are named.
func (env *Env) CheckLock(ctx context.Context, s *Source) error {
	if s.flags && env.frozen(s) {
		return Fail(CodeInvalid, "a run without a file has no lock, and --frozen runs only what one says (B46)").Hint("leave --frozen out")
	}
	if s.flags || s.lockChecked {
		return nil
	}
	s.lockChecked = true
	frozen := env.frozen(s)
	if s.lock == nil {
		if frozen {
			return Fail(CodeInvalid, "there is no %s, and --frozen runs only what it says (B46)", env.Shown(s.lockFile())).Hint("run `workshop lock`, and commit the file")
		}
		return nil
	}
	if names := env.ownVariables(s); frozen && len(names) > 0 {
		return Fail(CodeRefused, "%s sets %s, which %s doesn't have (B46); nothing was started",
			env.Shown(filepath.Join(s.Root(), ".env")), strings.Join(names, ", "), env.Shown(s.lockFile())).
			Hint("set it in the environment, or name the file: --env-file .env")
	}
	differences, err := s.compareLock(ctx)
	if err != nil {
		return err
	}
	var can, refused []string
	what := "an image"
	for _, d := range differences {
		switch {
		case d.Kind == lock.Can:
			can = append(can, d.String())
		case d.Kind == lock.SourceK && d.Field+d.Now != "":
			refused, what = append(refused, d.String()), "a source"
		case d.Kind == lock.ImageK && d.Now != "":
			refused = append(refused, d.String())
		case frozen && d.Kind != lock.Preset:
			refused = append(refused, d.String())
		}
	}
	switch {
	case frozen && len(can)+len(refused) > 0:
		return Fail(CodeRefused, "the workshop isn't what %s says (B46); nothing was started:%s", env.Shown(s.lockFile()), listed(append(refused, can...))).Hint(lockHint)
	case len(refused) > 0:
		return Fail(CodeRefused, "%s isn't what %s says (B46); nothing was started:%s", what, env.Shown(s.lockFile()), listed(refused)).Hint(lockHint)
	case len(can) > 0:
		env.warn("%s is out of date; what workers are granted beyond it, or no more:%s", env.Shown(s.lockFile()), listed(can))
		env.hint(lockHint)
	}
	return nil
}

// lockHint is what to do where the workshop isn't what its lock says.
const lockHint = "review it, and run `workshop lock`"

// ownVariables are the names of variables whose values come with the repository, in its
// `.env`, and from nobody who runs it: the lock has no values.
func (env *Env) ownVariables(s *Source) []string {
	fsys := projectFS{dir: s.Root(), named: s.named, read: s.read}
	o := workshop.Options{Lookup: env.Lookup, EnvFiles: s.envFiles}
	return slices.Sorted(maps.Keys(workshop.ProjectVariables(fsys, s.Workshop, o)))
}

// maxListed differences are named one by one.
const maxListed = 50

// listed are lines below a message.
func listed(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i == maxListed {
			fmt.Fprintf(&b, "\nand %d more", len(lines)-i)
			break
		}
		b.WriteString("\n" + Printable(l))
	}
	return b.String()
}

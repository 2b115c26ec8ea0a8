package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/source"
)

// Vendored is what `vendor` did, or found.
type Vendored struct {
	Dir      string   // as the user would write it
	Sources  []string // that are there now, by their IDs
	Wrong    []string // what isn't as the lock has it, in words
	Removed  []string // directories of sources that aren't used any more
	unneeded []string
}

// Vendor writes the sources of the workshop into the project, as the lock has them; check
// compares what is there, and writes nothing.
func (env *Env) Vendor(ctx context.Context, check bool) (Vendored, error) {
	env.fetches, env.vendors = !check, !check
	defer func() { env.fetches, env.vendors = false, false }()
	v := Vendored{}
	file, err := env.FindFile()
	if err != nil {
		return v, err
	}
	v.Dir = env.Shown(filepath.Join(filepath.Dir(file), filepath.FromSlash(source.VendorDir)))
	s, err := env.read(ctx, file, reading{symbols: true})
	if err != nil {
		return v, err
	}
	if err := env.loaded(s); err != nil {
		return v, err
	}
	project := ProjectDir(s.Root())
	used := map[string]bool{}
	for _, u := range s.Workshop.Sources {
		o := s.from.opened[u.ID]
		used[o.id.VendorName()] = true
		v.Sources = append(v.Sources, u.ID)
		if !check {
			continue
		}
		tree, err := source.Vendored(project, o.id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.Wrong = append(v.Wrong, u.ID+" isn't there")
		case err != nil:
			v.Wrong = append(v.Wrong, err.Error())
		default:
			if err := tree.Is(o.Tree); err != nil {
				v.Wrong = append(v.Wrong, fmt.Sprintf("%s: %v", u.ID, err))
			}
		}
	}
	root, err := os.OpenRoot(s.Root())
	if err != nil {
		return v, err
	}
	defer root.Close()
	dir, err := source.OpenVendor(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, Fail(CodeRefused, "vendored sources have a directory of their own: %w", err).Hint("look who put that there, and remove it")
	}
	if dir != nil {
		defer dir.Close()
		entries, err := fs.ReadDir(dir.FS(), ".")
		if err != nil {
			return v, err
		}
		for _, e := range entries {
			if !used[e.Name()] {
				v.unneeded = append(v.unneeded, e.Name())
			}
		}
	}
	if check {
		for _, name := range v.unneeded {
			v.Wrong = append(v.Wrong, Printable(name)+" is of no source of the workshop")
		}
		return v, nil
	}
	return v, env.writeVendored(s, root, dir, &v)
}

// writeVendored writes the sources, and removes those that aren't used from the vendor
// directory that was there.
func (env *Env) writeVendored(s *Source, root, dir *os.Root, v *Vendored) error {
	for _, id := range v.Sources {
		o := s.from.opened[id]
		if err := source.Vendor(root, o.id, o.Files); err != nil {
			return Fail(CodeFailed, "%s can't be vendored: %w", id, err)
		}
	}
	for _, name := range v.unneeded {
		if err := dir.RemoveAll(name); err != nil {
			return err
		}
		v.Removed = append(v.Removed, Printable(name))
	}
	return nil
}

// sayVendored says where the vendor directory of a project that has one isn't of the lock.
func (env *Env) sayVendored(s *Source) {
	project := ProjectDir(s.Root())
	if info, err := fs.Lstat(project, source.VendorDir); err != nil || !info.IsDir() {
		return
	}
	for _, o := range s.usedSources() {
		if tree, err := source.Vendored(project, o.id); err != nil || tree.Is(o.Tree) != nil {
			env.hint("%s is not of this lock: run `workshop vendor`, and commit it with the lock", env.Shown(filepath.Join(s.Root(), filepath.FromSlash(source.VendorDir))))
			return
		}
	}
}

// knownSources refuses IDs that the workshop doesn't have.
func (env *Env) knownSources(s *Source, ids []string) error {
	var names []string
	for _, u := range s.Workshop.Sources {
		names = append(names, u.ID)
	}
	for _, id := range ids {
		if !slices.Contains(names, id) {
			return noSuchSource(s, id, names)
		}
	}
	return nil
}

func noSuchSource(s *Source, id string, names []string) error {
	return Fail(CodeUsage, "%s has no source %q", s.Base(), id).Hint("%s", sourcesHint(id, names))
}

func sourcesHint(id string, names []string) string {
	if len(names) == 0 {
		return "it has none: `workshop add SOURCE` adds one"
	}
	return Suggestion(id, names)
}

// Chain is how a workshop comes to have a source: its file, and the sources between.
type Chain []string

// Why is what is known of a source, and of each way to it.
type Why struct {
	ID, Original, Ref, Commit, Signer string
	Workers                           []string // that come from it
	As                                []string // names of the file's imports of it
	By                                []string // who names it: the file, and IDs
	Chains                            []Chain
}

// WhySource says why the workshop has a source, by its ID, its address or the name of an
// import. Nothing is fetched.
func (env *Env) WhySource(ctx context.Context, name string) (Why, error) {
	s, all, err := env.whySources(ctx)
	if err != nil {
		return Why{}, err
	}
	id := strings.TrimSuffix(name, "/")
	if parsed, err := source.ParseID(id); err == nil {
		id = parsed.String()
	}
	var names []string
	via := map[string][]string{}
	for _, w := range all {
		names, via[w.ID] = append(append(names, w.ID), w.As...), w.By
	}
	at := slices.IndexFunc(all, func(w Why) bool { return w.ID == id || slices.Contains(w.As, name) })
	if at < 0 {
		return Why{}, noSuchSource(s, name, names)
	}
	w := all[at]
	w.Chains = chainsTo(w.ID, via)
	return w, nil
}

// WhySources are all sources of the workshop, without the ways to them.
func (env *Env) WhySources(ctx context.Context) ([]Why, error) {
	_, all, err := env.whySources(ctx)
	return all, err
}

func (env *Env) whySources(ctx context.Context) (s *Source, all []Why, err error) {
	if s, err = env.Load(ctx); err != nil {
		return nil, nil, err
	}
	for _, u := range s.Workshop.Sources {
		o := s.from.opened[u.ID]
		w := Why{ID: u.ID, Original: u.Original, Ref: o.Ref, Commit: o.Commit, Signer: signerText(o.Signed), As: u.As, By: u.Via}
		for i := range s.Workshop.Workers {
			if s.Workshop.Workers[i].From == u.ID {
				w.Workers = append(w.Workers, s.Workshop.Workers[i].Name)
			}
		}
		all = append(all, w)
	}
	return s, all, nil
}

// chainsTo are the ways to a source, of which the loader has bounded length and number.
func chainsTo(id string, via map[string][]string) (out []Chain) {
	for _, by := range via[id] {
		if _, isSource := via[by]; !isSource {
			out = append(out, Chain{by, id})
			continue
		}
		for _, c := range chainsTo(by, via) {
			if out = append(out, append(slices.Clone(c), id)); len(out) >= maxListed {
				return out
			}
		}
	}
	return out
}

// SourceIDs are the sources of the workshop, for completion, and with names the names of
// its imports.
func (env *Env) SourceIDs(ctx context.Context, names bool) []string {
	file, err := env.FindFile()
	if err != nil {
		return nil
	}
	s, err := env.read(ctx, file, reading{symbols: true})
	if err != nil || s.lock == nil {
		return nil
	}
	var out []string
	for id := range s.lock.Sources {
		out = append(out, id)
	}
	if names && s.Workshop != nil {
		for _, u := range s.Workshop.Sources {
			out = append(out, u.As...)
		}
	}
	slices.Sort(out)
	return out
}

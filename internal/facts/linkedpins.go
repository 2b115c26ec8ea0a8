package facts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// unfinished are directories of a git directory that git removes at the end of a rebase
// or cherry-pick: a mount on one would end the worker then.
var unfinished = map[string]bool{"rebase-merge": true, "rebase-apply": true, "sequencer": true}

// search looks for special files in a repository, and lists what stays read-only in it
// with `git: rw`. Git writes objects, refs, logs, the worktree's own directory, and in the
// common directory itself: it locks packed-refs there whenever a ref is deleted, as at the
// end of each cherry-pick and rebase.
func (r *repository) search(ctx context.Context, sockets bool) error {
	var special0, missed string
	r.pins()
	t := tree{ctx: ctx, root: r.Real}
	t.visit = func(d *dir, e fs.DirEntry) {
		if special(e.Type()) && special0 == "" {
			special0 = path.Join(d.rel, e.Name())
		}
	}
	t.listed = func(d *dir) { // submodules of a linked worktree
		if below, in := subpath.Below(d.rel, r.Own); r.Own == "" || !in || below == "" || !d.git || !d.has.opens() {
			return
		}
		if info, err := lstatAt(d.file, "hooks"); err == nil && info.IsDir() {
			r.pin(path.Join(d.rel, "hooks"))
		}
	}
	t.missed = func(rel string, err error) {
		if !errors.Is(err, fs.ErrPermission) {
			missed = rel + ": " + err.Error()
		}
	}
	if err := t.walk(); err != nil {
		return err
	}
	switch {
	case special0 != "" && !sockets:
		return errLinked("its repository has a socket, FIFO or device, %s (B7): remove it, or write `sockets: allow`", ClipPath(path.Join(r.Real, special0)))
	case missed != "":
		return errLinked("its repository can't be searched (B7): %s", ClipPath(missed))
	}
	slices.Sort(r.Pinned)
	return nil
}

func (r *repository) pin(rel string) {
	if len(r.Pinned) >= maxPinned {
		r.refuse("its repository has more than %d entries to protect", maxPinned)
		return
	}
	r.Pinned = append(r.Pinned, rel)
}

// refuse says why `git: rw` isn't possible; the first reason counts.
func (r *repository) refuse(format string, args ...any) {
	if r.NotWritable == "" {
		r.NotWritable = errLinked(format, args...).Error()
	}
}

// pins lists what stays read-only of the common directory and of the worktree's own.
func (r *repository) pins() {
	entries, err := os.ReadDir(r.Real)
	if err != nil {
		r.refuse("%v", err)
		return
	}
	names := map[string]fs.FileMode{}
	for _, e := range entries {
		names[e.Name()] = e.Type()
		switch name := e.Name(); {
		case name == "objects" || name == "refs" || name == "logs" || unfinished[name]:
		case e.IsDir():
			r.pin(name)
		case (name == "config" || name == "config.worktree") && e.Type().IsRegular():
			r.pin(name)
		}
	}
	if _, ok := names["reftable"]; ok {
		r.refuse("its refs are in the reftable format, which `git: rw` doesn't support in a linked worktree or submodule yet")
	}
	if _, ok := names["commondir"]; ok {
		r.refuse("%s has a commondir", ClipPath(r.Real))
	}
	for _, name := range []string{"hooks", "info", "objects", "refs", "logs", "worktrees", "modules", "config", "config.worktree"} {
		if names[name]&fs.ModeSymlink != 0 {
			r.refuse("%s in its repository %s is a symbolic link", name, ClipPath(r.Real))
		}
	}
	for _, name := range []string{"hooks", "info", "objects/info"} {
		if info, err := os.Lstat(filepath.Join(r.Real, name)); err != nil || !info.IsDir() {
			r.refuse("its repository has no directory %s, which stays read-only: `mkdir %s`", name, shellquote.Path(filepath.Join(r.Real, name)))
		}
	}
	if _, ok := names["config"]; !ok {
		r.refuse("its repository %s has no config", ClipPath(r.Real))
	}
	r.pin("objects/info") // alternates: other directories that git reads objects from
	if r.Own == "" {
		return
	}
	for _, name := range []string{"commondir", "config.worktree"} {
		if info, err := os.Lstat(filepath.Join(r.own, name)); err == nil && info.Mode().IsRegular() {
			r.pin(path.Join(r.Own, name))
		} else if err == nil {
			r.refuse("%s is not a regular file", ClipPath(filepath.Join(r.own, name)))
		}
	}
}

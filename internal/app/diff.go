package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/diff"
	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/workshop"
)

// DiffOptions say what the workshop is compared with: at least one of both.
type DiffOptions struct {
	Base     string // a revision of its repository
	Boundary string // the path of an organisation's workshop.yaml
}

// DiffReport is what differs. Files are named as the user would write them.
type DiffReport struct {
	File         string
	Base, Commit string // empty without a base
	Boundary     string
	Rows         []diff.Row // against the base
	Beyond       []diff.Row // what the boundary doesn't grant
}

// All are the rows of both comparisons.
func (r *DiffReport) All() []diff.Row { return append(r.Rows[:len(r.Rows):len(r.Rows)], r.Beyond...) }

// Diff compares what the workshop grants with what it granted at a revision, read from
// git's objects, and with a boundary. Neither environment nor variables are read.
func (env *Env) Diff(ctx context.Context, o DiffOptions) (DiffReport, error) {
	file, err := env.FindFile()
	missing := err
	if err != nil {
		if file = env.Abs("workshop.yaml"); env.Settings.File != "" {
			file = env.Abs(env.Settings.File)
		}
		if o.Base == "" {
			return DiffReport{}, err
		}
	}
	r := DiffReport{File: env.Shown(file), Base: o.Base, Boundary: o.Boundary}
	root, name := filepath.Dir(file), filepath.Base(file)
	if o.Base != "" {
		top, below, err := git.Top(ctx, root)
		if err != nil {
			return r, gitFailure(ctx, err)
		}
		root, name = top, path.Join(below, name)
	}
	head, err := env.diffSide(ctx, ProjectDir(root), name, root, "")
	if err != nil {
		return r, err
	}
	if o.Base != "" {
		if err := env.diffBase(ctx, &r, root, name, &head, missing); err != nil {
			return r, err
		}
		shownRows(env, root, r.Rows)
	}
	if o.Boundary == "" {
		return r, nil
	}
	at := env.Abs(o.Boundary)
	boundary, err := env.diffSide(ctx, os.DirFS(filepath.Dir(at)), filepath.Base(at), filepath.Dir(at), "")
	switch {
	case err != nil:
		return r, err
	case boundary.Workshop == nil:
		return r, Fail(CodeInvalid, "--boundary %s: no such file or directory", o.Boundary)
	case head.Workshop == nil:
		return r, nil // it grants nothing
	}
	if r.Beyond, err = diff.Within(ctx, boundary, head); err != nil {
		return r, Fail(CodeInvalid, "diff: %w", err)
	}
	for i := range r.Beyond {
		r.Beyond[i].At.Filename = env.shownIn(root, r.Beyond[i].At.Filename)
		r.Beyond[i].Was.Filename = env.shownIn(filepath.Dir(at), r.Beyond[i].Was.Filename)
	}
	return r, nil
}

// diffBase compares head with the revision.
func (env *Env) diffBase(ctx context.Context, r *DiffReport, root, name string, head *diff.Side, missing error) error {
	files, err := git.Tree(ctx, root, r.Base)
	if err != nil {
		return gitFailure(ctx, err)
	}
	defer files.Close()
	r.Commit = files.Commit
	base, err := env.diffSide(ctx, files, name, root, r.Base)
	if err != nil {
		return err
	}
	if base.Workshop == nil && missing != nil {
		return missing
	}
	if len(head.Variables) > 0 && !tracked(ctx, root, path.Join(path.Dir(name), ".env")) {
		head.Variables = base.Variables // it is this machine's own
	}
	if r.Rows, err = diff.Compare(ctx, base, *head); err != nil {
		return Fail(CodeInvalid, "diff: %w", err)
	}
	return nil
}

// tracked reports whether the last commit has a file.
func tracked(ctx context.Context, root, name string) bool {
	files, err := git.Tree(ctx, root, "HEAD")
	if err != nil {
		return true // compared, then
	}
	defer files.Close()
	_, err = files.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// diffSide reads one side. Problems of it are an event; revision is in the names of its
// files.
func (env *Env) diffSide(ctx context.Context, fsys fs.FS, name, root, revision string) (diff.Side, error) {
	sources, err := env.sourcesOf(fsys, name)
	if err != nil {
		return diff.Side{}, err
	}
	if revision != "" { // it may have been vendored since
		sources.also = []fs.FS{ProjectDir(filepath.Join(root, filepath.FromSlash(path.Dir(name))))}
	}
	side, list := diff.Read(ctx, fsys, name, filepath.ToSlash(root), sources.open)
	if ctx.Err() != nil {
		return side, context.Cause(ctx)
	}
	if !list.HasErrors() {
		return side, nil
	}
	shown := func(file string) string {
		if file == "" || revision != "" && !isAddress(file) {
			return prefixed(revision, file)
		}
		return env.shownIn(root, file)
	}
	texts := map[string][]byte{}
	for file, text := range workshop.Sources(fsys, list) {
		texts[shown(file)] = text
	}
	for i := range list {
		list[i].Range.Filename = shown(list[i].Range.Filename)
		for j := range list[i].Related {
			list[i].Related[j].Range.Filename = shown(list[i].Related[j].Range.Filename)
		}
	}
	env.event(Event{Kind: Problems, Diagnostics: list, Sources: texts})
	return side, Fail(CodeInvalid, "%s can't be compared: %s", shown(name), Count(list.Count(diag.Error), "error"))
}

func prefixed(revision, file string) string {
	if file == "" {
		return ""
	}
	return clip.Bytes(revision, 60) + ":" + file
}

// shownIn is a file of a directory as the user would write it.
func (env *Env) shownIn(dir, file string) string {
	if file == "" || isAddress(file) {
		return file
	}
	return filepath.ToSlash(env.Shown(filepath.Join(dir, filepath.FromSlash(file))))
}

func shownRows(env *Env, root string, rows []diff.Row) {
	for i := range rows {
		rows[i].At.Filename = env.shownIn(root, rows[i].At.Filename)
		rows[i].Was.Filename = env.shownIn(root, rows[i].Was.Filename)
	}
}

// gitFailure says what git said, and what to do.
func gitFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := Fail(CodeInvalid, "the base can't be read: %w", err)
	if errors.Is(err, git.ErrNoGit) {
		return f.Hint("install git: the base is read from its objects")
	}
	return f.Hint("--base takes a commit, tag or branch that this clone has; in continuous integration fetch it first: `git fetch origin BRANCH`")
}

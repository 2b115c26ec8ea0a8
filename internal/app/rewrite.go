package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
)

// replaceFile replaces the workshop file, once what is new in it is known to be
// valid.
func (env *Env) replaceFile(ctx context.Context, s *Source, before, after []byte) error {
	file := s.Path
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return Fail(CodeFailed, "%s is not a regular file, and is not written", env.Shown(file)).Hint("add the line by hand")
	}
	// Beside the file that the project has, so that paths mean the same.
	f, err := os.CreateTemp(s.Root(), ".new-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing once it is renamed
	_, err = f.Write(after)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), keepOwner(f, info), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := env.checkRewritten(ctx, s, f.Name()); err != nil {
		return err
	}
	// Somebody may have saved it in an editor in the meantime.
	if now, err := boundedfile.Read(file, workshop.MaxFileSize); err != nil || !bytes.Equal(now, before) {
		return Fail(CodeFailed, "%s was changed by another program; nothing was written", env.Shown(file)).Hint("run it again")
	}
	replace := func() error {
		if mountsFile(s, info) && writeInPlace(file, info, after) == nil {
			return nil
		}
		return os.Rename(f.Name(), file)
	}
	if err := env.replaceWatched(ctx, s, s.Base(), before, after, replace); err != nil {
		return err
	}
	// A worker that may write there could put another file in the place of the new one.
	if now, err := boundedfile.Read(file, workshop.MaxFileSize); err != nil || !bytes.Equal(now, after) {
		return Fail(CodeFailed, "%s isn't what was written: it was changed by another program at the same time", env.Shown(file)).
			Hint("look at it: a worker may have done that")
	}
	return nil
}

// mountsFile reports whether a worker mounts the file by itself. A rename would take
// the mount away from it, which ends the worker.
func mountsFile(s *Source, file os.FileInfo) bool {
	for i := range s.Workshop.Workers {
		for _, m := range s.Workshop.Workers[i].Container.Mounts {
			source := m.Source.V
			if !filepath.IsAbs(source) {
				source = filepath.Join(s.Root(), source)
			}
			if is, err := os.Stat(source); err == nil && os.SameFile(is, file) {
				return true
			}
		}
	}
	return false
}

// writeInPlace replaces what the file has. The new text is in another file meanwhile,
// so that an error or a crash loses nothing.
func writeInPlace(file string, is os.FileInfo, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(is, now) {
		return errors.Join(err, errors.New("it was replaced"))
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(len(text))), f.Sync())
}

// replaceWatched replaces a file of the project's directory, such as the workshop's,
// which may be a watched one (B8).
func (env *Env) replaceWatched(ctx context.Context, s *Source, name string, before, after []byte, replace func() error) error {
	project, err := env.projectName(s.Workshop.Name.V, RealPath(s.Root()))
	if err != nil {
		return err
	}
	r, err := env.Record(project)
	if err != nil {
		return err
	}
	file := filepath.Join(RealPath(s.Root()), name)
	others, unlock := env.recordsOf(ctx, project, []string{file})
	defer unlock()
	return facts.Rewrite(r, others, file, before, after, replace)
}

// checkRewritten loads and compiles the text as the file that it becomes.
func (env *Env) checkRewritten(ctx context.Context, s *Source, name string) error {
	fresh, err := env.read(ctx, name, reading{like: s})
	if err != nil {
		return err
	}
	if fresh.Workshop == nil {
		list, texts := fresh.Shown()
		shown, wrote := s.ShownFile(s.Base()), fresh.ShownFile(fresh.Base())
		for i := range list {
			if list[i].Range.Filename == wrote {
				list[i].Range.Filename = shown
			}
		}
		texts[shown] = texts[wrote]
		env.event(Event{Kind: Problems, Diagnostics: list, Sources: texts})
		return Fail(CodeInvalid, "with this line, %s would be invalid; nothing was written", env.Shown(s.Path))
	}
	if err := s.keepsAllowed(fresh); err != nil {
		return err
	}
	if fresh.Runs() != nil {
		return nil
	}
	_, err = compileWorkshop(fresh.Workshop)
	return err
}

// keepsAllowed refuses a change after which a worker reaches less: a list of the project's
// takes the place of its base's (B47).
func (s *Source) keepsAllowed(fresh *Source) error {
	if s.Workshop.Base == "" {
		return nil
	}
	for i := range s.Workshop.Workers {
		w := &s.Workshop.Workers[i]
		now := fresh.Worker(w.Name)
		if now == nil {
			continue
		}
		lost := ""
		if had, has := w.Container.Network.Mode.V, now.Container.Network.Mode.V; has < had {
			lost = "have network " + has.String() + " in place of " + had.String()
		} else if has == firewall.Restricted {
			lines := filled(now.Container.Network.Allow)
			for _, r := range w.Container.Network.Allow {
				if !firewall.CoveredBy(r.Filled(), lines) {
					lost = "no longer reach " + RuleLine(r.Filled(), false)
					break
				}
			}
		}
		if lost != "" {
			return Fail(CodeRefused, "with this line alone, %s would %s; nothing was written", w.Name, lost).Hint("%s", s.wholeList(w.Container.Network.Allow))
		}
	}
	return nil
}

// changedLines are the lines that differ, with + and -, and their numbers.
func changedLines(before, after []byte) []string {
	x, y := bytes.Split(before, []byte("\n")), bytes.Split(after, []byte("\n"))
	var out []string
	show := func(sign string, n int, line []byte) {
		out = append(out, fmt.Sprintf("%s%4d | %s", sign, n+1, bytes.TrimRight(line, "\r")))
	}
	i := 0 // equal lines around: a hostile file may have a great many
	for i < min(len(x), len(y)) && bytes.Equal(x[i], y[i]) {
		i++
	}
	for len(x) > i && len(y) > i && bytes.Equal(x[len(x)-1], y[len(y)-1]) {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	j := i
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && bytes.Equal(x[i], y[j]):
			i, j = i+1, j+1
		case i < len(x) && !slices.ContainsFunc(y[j:], func(l []byte) bool { return bytes.Equal(l, x[i]) }):
			show("-", i, x[i])
			i++
		default:
			show("+", j, y[j])
			j++
		}
	}
	return out
}

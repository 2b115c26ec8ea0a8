package app

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
	"github.com/llmdo/workshop/workshop/worker"
)

// AddOptions say which source a workshop takes over.
type AddOptions struct {
	// Source is its address, perhaps without "git+https://", and with "@VERSION".
	Source string
	// As is the name of the import; empty: from the address.
	As string
	// Extends makes it the workshop's base.
	Extends bool
	LockOptions
}

// Added is a source that a workshop file has now.
type Added struct {
	File, Line string // the file as the user would write it, and what it has now
	Written    bool
	New        bool // there was no file
	// Lacking: the import needs what the file doesn't grant; the lock isn't written.
	Lacking bool
	Lock    LockResult
}

// AddSource writes a source into the workshop file, once somebody agreed to it, and locks
// it. The text of the rest stays. A base is enough for a workshop: where there is no file,
// one is written that extends it.
func (env *Env) AddSource(ctx context.Context, o AddOptions) (Added, error) {
	line, err := sourceLine(o)
	if err != nil {
		return Added{}, err
	}
	env.Offline, env.fetches = o.Offline, true
	env.resolver = newResolver(func(string) bool { return false }, o.Yes)
	defer func() { env.fetches, env.resolver = false, nil }()
	file, draft, err := env.fileFor(o)
	if err != nil {
		return Added{}, err
	}
	s, err := env.readResolved(ctx, file, reading{symbols: true, text: draft})
	if err != nil {
		return Added{}, err
	}
	// A grant may be there before what it is for, and a base has what the file lacks.
	if slices.ContainsFunc(s.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && d.Code != "grant-unknown" && (!o.Extends || d.Code != "missing-key")
	}) {
		return Added{}, env.notAdded(s, draft != nil)
	}
	fresh, text, err := env.withSource(ctx, s, &line)
	if err != nil {
		return Added{}, err
	}
	if s.Workshop == nil {
		s.Workshop = fresh.Workshop
	}
	if s.Workshop == nil && fresh.from.suspect() {
		return Added{}, Fail(CodeRefused, "%s changed since `up`, and a worker may have written that (B8)", env.Shown(s.Path)).Hint("review it, and mend its errors first")
	}
	if s.Workshop != nil {
		if err := env.reviewSource(ctx, s, UpOptions{}); err != nil {
			return Added{}, err
		}
	}
	if slices.ContainsFunc(fresh.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "import-key" && d.Range.Filename == s.Base() }) {
		return Added{}, Fail(CodeUsage, "%s is a base, which says itself what workers are granted: it can't be imported", line.From).
			Hint("extend it: `workshop add --extends %s`", shellquote.Quote(o.Source))
	}
	added := Added{File: env.Shown(s.Path), Line: line.String(), New: draft != nil}
	others := slices.DeleteFunc(slices.Clone(fresh.Diagnostics), func(d diag.Diagnostic) bool { return d.Code == "import-needs" })
	if added.Lacking = len(others) < len(fresh.Diagnostics); others.HasErrors() || o.Extends && added.Lacking {
		err := env.notAdded(fresh, added.New)
		worse := slices.ContainsFunc(others, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Code != "missing-key" })
		if f, ok := errors.AsType[*Failure](err); ok && added.New && !worse {
			f.Hint("nothing was written; write %s with what is missing, and run `workshop lock`:\n%s", added.File, strings.TrimSpace(string(text)))
		}
		return added, err
	}
	if err := fresh.from.acceptChosen(ctx, fresh.Workshop); err != nil {
		return added, err
	}
	write := env.replaceText
	if added.New {
		write = env.writeFirst
	}
	if err := write(ctx, s, text); err != nil {
		return added, err
	}
	added.Written = true
	if added.Lacking {
		err := env.loaded(fresh)
		env.hint("write what it is to be granted, and run `workshop lock`")
		return added, err
	}
	added.Lock, err = env.Lock(ctx, o.LockOptions)
	return added, err
}

// notAdded fails with the errors of a file that gets a source. Where there is none yet, its
// lines aren't anywhere: what is wrong with them is said without a place.
func (env *Env) notAdded(s *Source, isNew bool) error {
	if !isNew {
		return env.loaded(s)
	}
	inBase := *s.onlyErrors()
	var own diag.List
	inBase.Diagnostics = slices.DeleteFunc(slices.Clone(inBase.Diagnostics), func(d diag.Diagnostic) bool {
		if d.Range.Filename == s.Base() {
			own = append(own, d)
		}
		return d.Range.Filename == s.Base()
	})
	env.problems(&inBase)
	var lines []string
	for _, d := range own {
		lines = append(lines, d.Summary)
	}
	if n := len(inBase.Diagnostics); n > 0 {
		lines = append(lines, "the base can't be extended: "+Count(n, "error")+"; nothing was written")
	}
	f := Fail(codeOf(s.Diagnostics), "%s", strings.Join(lines, "\n"))
	for _, d := range own {
		if d.Hint != "" {
			f.Hints = appendNew(f.Hints, d.Hint)
		}
	}
	return f
}

// fileFor is the workshop file that gets a source, and where there is none the text of
// one that lacks a base alone: its name is the directory's, as `init` has it.
func (env *Env) fileFor(o AddOptions) (file string, draft []byte, err error) {
	file, err = env.FindFile()
	if none := noFileError(""); !o.Extends || !errors.As(err, &none) {
		return file, nil, err
	}
	dir := env.Dir
	if env.Settings.File != "" {
		dir = env.Abs(env.Settings.File)
	}
	if f := env.noProject(dir); f != nil {
		return "", nil, f.Hint("run it in a directory of the project")
	}
	return filepath.Join(dir, fileNames[0]), []byte("workshop:\n  name: " + nameOf(dir) + "\n"), nil
}

// withSource reads the workshop file as it is with a source. Without a version it gets the
// range of the newest release.
func (env *Env) withSource(ctx context.Context, s *Source, line *edit.Source) (*Source, []byte, error) {
	for {
		text, err := edit.AddSource(s.text(), *line)
		if err != nil {
			return nil, nil, Fail(CodeFailed, "%s: %w", env.Shown(s.Path), err)
		}
		if bytes.Equal(text, s.text()) {
			return nil, nil, Fail(CodeUsage, "%s has %s already", env.Shown(s.Path), line.From).Hint("`workshop update` looks for newer releases")
		}
		fresh, err := env.readResolved(ctx, s.Path, reading{symbols: true, text: text})
		if err != nil || line.Version != "" {
			return fresh, text, err
		}
		id, err := source.ParseID(line.From)
		got := fresh.from.opened[id.String()]
		if err != nil || got == nil {
			return fresh, text, err // its diagnostics say why
		}
		tag := path.Base(got.Ref)
		if !source.IsRelease(tag) {
			return fresh, text, nil
		}
		line.Version = source.RangeOf(tag)
	}
}

// sourceLine is what the file is to have.
func sourceLine(o AddOptions) (edit.Source, error) {
	from, version := o.Source, ""
	if i := strings.LastIndexByte(from, '@'); i > strings.LastIndexByte(from, '/') {
		from, version = from[:i], from[i+1:]
	}
	host, rest, _ := strings.Cut(from, "/")
	user, server, isSCP := strings.Cut(host, ":")
	switch {
	case strings.HasPrefix(from, "/"), strings.HasPrefix(from, "."), strings.HasPrefix(from, "~"):
		return edit.Source{}, Fail(CodeUsage, "a directory of this machine can't be a source: %s", Printable(o.Source)).
			Hint("publish it, in a git repository or by `workshop publish`; or mount what the workers need")
	case isSCP && strings.Contains(user, "@") && !strings.Contains(from, "://"):
		return edit.Source{}, Fail(CodeUsage, "%s is git's short form of an address", Printable(o.Source)).
			Hint("write it whole: `workshop add %s`", shellquote.Quote("ssh://"+user+"/"+strings.TrimPrefix(server+"/"+rest, "/")))
	case !strings.Contains(from, "://") && !strings.ContainsAny(host, ".:") && host != "localhost":
		return edit.Source{}, Fail(CodeUsage, "%s doesn't begin with a host", Printable(o.Source)).
			Hint("write the host, as in github.com/%s, or https:// before it", Printable(from))
	}
	switch {
	case strings.HasPrefix(from, "https://"), strings.HasPrefix(from, "ssh://"):
		from = "git+" + from
	case !strings.Contains(from, "://"):
		from = "git+https://" + from
	}
	id, err := source.ParseID(from)
	if at := strings.LastIndexByte(from, ':'); err != nil && strings.HasPrefix(from, "oci://") && at > strings.LastIndexByte(from, '/') {
		return edit.Source{}, Fail(CodeUsage, "%w", err).Hint("`workshop add %s`", shellquote.Quote(from[:at]+"@"+from[at+1:]))
	}
	if err != nil {
		return edit.Source{}, Fail(CodeUsage, "%w", err)
	}
	if _, err := source.ParseVersion(version); err != nil {
		return edit.Source{}, Fail(CodeUsage, "%w", err)
	}
	line := edit.Source{As: o.As, From: id.From(), Version: version}
	if o.Extends {
		return line, nil
	}
	if line.As == "" {
		line.As = strings.ToLower(id.Name())
	}
	if !worker.ValidName(line.As) || strings.Contains(line.As, "--") {
		return line, Fail(CodeUsage, "%q can't be the name of an import", line.As).
			Hint("name it, in lower-case letters, digits, _ and -: `workshop add %s --as NAME`", shellquote.Quote(o.Source))
	}
	return line, nil
}

// writeFirst writes the workshop file of a directory that had none.
func (env *Env) writeFirst(ctx context.Context, s *Source, text []byte) error {
	return env.replaceWatched(ctx, s, s.Base(), nil, text, func() error {
		err := writeNew(s.Root(), s.Base(), text)
		if errors.Is(err, fs.ErrExist) {
			return Fail(CodeFailed, "%s was written by another program; nothing was changed", env.Shown(s.Path)).Hint("run it again")
		}
		return err
	})
}

// replaceText replaces the workshop file by a text that was checked.
func (env *Env) replaceText(ctx context.Context, s *Source, text []byte) error {
	info, err := os.Lstat(s.Path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return Fail(CodeFailed, "%s is not a regular file, and is not written", env.Shown(s.Path)).Hint("add the line by hand")
	}
	// Somebody may have saved it in an editor in the meantime.
	if now, err := boundedfile.Read(s.Path, workshop.MaxFileSize); err != nil || !bytes.Equal(now, s.text()) {
		return Fail(CodeFailed, "%s was changed by another program; nothing was written", env.Shown(s.Path)).Hint("run it again")
	}
	write := atomicfile.File{
		Name: s.Path, Data: text, Mode: info.Mode().Perm(), Prepare: func(f *os.File) error { return keepOwner(f, info) },
	}.Write
	return env.replaceWatched(ctx, s, s.Base(), s.text(), text, write)
}

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/workshop"
)

// commandLine is the name of a run's file, which is none of the project's.
const commandLine = "command line"

// runWorker is the worker of a run without a file.
const runWorker = "dev"

// runSource loads the workshop of a run: that of the file, narrowed by the flags, or
// what the flags say alone. The worker is the only one of the result.
func (env *Env) runSource(ctx context.Context, o *RunOptions) (*Source, error) {
	file, err := env.runFile(o)
	if err != nil {
		return nil, err
	}
	if file == "" {
		if o.Worker != "" {
			return nil, Fail(CodeUsage, "there is no workshop.yaml that has a worker %s", quoted(o.Worker)).
				Hint("%s", commandAfterDash(o))
		}
		return env.sourceOfFlags(ctx, o)
	}
	return env.narrowedSource(ctx, o)
}

// commandAfterDash is for a command whose first word was taken for a worker.
func commandAfterDash(o *RunOptions) string {
	return "a command comes after --: `workshop run -- " + Printable(strings.Join(append([]string{o.Worker}, o.Command...), " ")) + "`"
}

// runFile is the workshop's file; empty: the run has none.
func (env *Env) runFile(o *RunOptions) (string, error) {
	if o.NoFile {
		return "", nil
	}
	file, err := env.FindFile()
	if _, none := errors.AsType[noFileError](err); none && env.Settings.File == "" {
		return "", nil
	}
	if info, e := os.Stat(file); err == nil && e == nil && o.Print && info.Size() == 0 {
		return "", nil // a shell made it for `workshop run --print >workshop.yaml`
	}
	return file, err
}

// sourceOfFlags is a workshop of the flags alone. Nothing of this directory is read.
func (env *Env) sourceOfFlags(ctx context.Context, o *RunOptions) (*Source, error) {
	root := RealPath(env.Dir)
	flags := o.RunFlags
	if flags.Image == "" {
		flags.Image = workshop.HostImage
	}
	container, err := flags.container(env, root, nil)
	if err != nil {
		return nil, err
	}
	worker := yamlMap{{"name", yamlScalarNode(runWorker, "")}, {"tools", yamlList{yamlScalarNode("shell", "")}}}
	if len(flags.Secrets) > 0 {
		var names yamlList
		for _, arg := range flags.Secrets {
			name, _, _ := strings.Cut(arg, "=")
			names = append(names, yamlScalarNode(name, "--secret "+arg))
		}
		worker.add("container", yamlMap{{"secrets", names}})
	}
	text, lines, err := writeYAML(yamlMap{{"workshop", yamlMap{
		{"name", yamlScalarNode(ProjectSafe(filepath.Base(root), "workshop"), "this directory's name")},
		{"container", container},
		{"workers", yamlList{yamlInline{worker}}},
	}}})
	if err != nil {
		return nil, err
	}
	s := &Source{Path: filepath.Join(root, commandLine), shownDir: env.Shown(root), flags: true, read: map[string]*kept{}}
	fsys := flagsFS{projectFS{dir: root}, text}
	s.Workshop, s.Diagnostics = workshop.Load(ctx, fsys, commandLine, env.loadOptions(root))
	s.read[commandLine] = &kept{text: text, whole: true}
	return env.runLoaded(ctx, s, lines)
}

// narrowedSource is the workshop of the file with the one worker, narrowed.
func (env *Env) narrowedSource(ctx context.Context, o *RunOptions) (*Source, error) {
	env.Warnings = WarnNone
	s, err := env.Load(ctx)
	if err != nil {
		return nil, err
	}
	name := o.Worker
	switch all := s.WorkerNames(); {
	case name != "":
		if err := s.CheckWorkers([]string{name}); err != nil {
			if f, ok := err.(*Failure); ok {
				f.Hint("%s", commandAfterDash(o))
			}
			return nil, err
		}
	case len(all) == 1:
		name = all[0]
	default:
		return nil, Fail(CodeUsage, "%s has %d workers: which one runs the command?", s.Base(), len(all)).
			Hint("for example `workshop run %s -- COMMAND`, with one of %s", all[0], strings.Join(all[:min(len(all), 20)], ", "))
	}
	container, err := o.container(env, RealPath(s.Root()), s.Worker(name))
	if err != nil {
		return nil, err
	}
	if container == nil {
		container = yamlMap{}
	}
	text, lines, err := writeYAML(container)
	if err != nil {
		return nil, err
	}
	if err := env.checkRunLock(ctx, s, o); err != nil {
		return nil, err
	}
	fsys := flagsFS{projectFS{dir: s.Root()}, text}
	one := *s
	one.Workshop, one.Diagnostics = workshop.OneOff(ctx, fsys, s.Workshop, name, commandLine, env.loadOptions(s.Root()))
	return env.runLoaded(ctx, &one, lines)
}

// checkRunLock is [Env.CheckLock] for the whole file, of which a run has one worker.
func (env *Env) checkRunLock(ctx context.Context, s *Source, o *RunOptions) error {
	if o.Image != "" && env.frozen(s) {
		return Fail(CodeRefused, "--image %s is not what %s says (B46)", quoted(o.Image), env.Shown(s.lockFile())).Hint("leave --image or --frozen out")
	}
	return env.CheckLock(ctx, s)
}

func (env *Env) loadOptions(root string) workshop.Options {
	return workshop.Options{Lookup: env.Lookup, Home: env.Home, Homes: facts.Homes(os.Getuid(), env.Lookup), Root: filepath.ToSlash(root)}
}

// runLoaded refuses a workshop with errors.
func (env *Env) runLoaded(ctx context.Context, s *Source, lines map[int]string) (*Source, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.lines = lines
	if f := s.runErrors(s.Diagnostics, CodeUsage); f != nil {
		return nil, f
	}
	return s, nil
}

// runErrors says errors of a run's workshop, each of the flag that it comes from; nil
// for none.
func (s *Source) runErrors(list diag.List, code int) *Failure {
	failure := &Failure{Code: code}
	var texts []string
	widens := false
	for _, d := range list {
		if d.Severity != diag.Error {
			continue
		}
		text := s.runText(d)
		if d.Code == "widening" {
			widens = true
			text += grantedAt(s, d)
		} else if hint := s.runHint(d); hint != "" && len(failure.Hints) == 0 {
			failure.Hint("%s", hint)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil
	}
	failure.Err = errors.New(strings.Join(texts, "\n"))
	if widens {
		failure.Code, failure.Hints = CodeRefused, nil
		failure.Hint("flags only narrow what %s grants: change it there, or run without it: --no-file", s.ShownFile(s.Base()))
	}
	return failure
}

// runHint is the hint of a problem, without what only a file can say.
func (s *Source) runHint(d diag.Diagnostic) string {
	hint := d.Hint
	if d.Range.Filename != commandLine {
		return hint
	}
	if s.lines[d.Range.Start.Line] == thisDirectory && strings.HasPrefix(hint, "mount a directory of the project") {
		return "change to a project's directory: it is mounted read-only"
	}
	hint, _, _ = strings.Cut(hint, ", or write {")
	if key, value, ok := strings.Cut(hint, ": "); ok && slices.Contains([]string{"write memory", "write cpu", "write pids"}, key) {
		return "write " + s.lines[d.Range.Start.Line] + " " + value
	}
	return hint
}

// runPreflight is [Env.preflight] for a run.
func (env *Env) runPreflight(p *Project, list diag.List) error {
	for _, d := range list {
		if d.Severity != diag.Error && !env.Quiet {
			env.warn("%s", p.runText(d))
		}
	}
	if f := p.runErrors(list, CodeRefused); f != nil {
		return f
	}
	return nil
}

// runText is a problem of a run's workshop: of a flag, or of a place in the file.
func (s *Source) runText(d diag.Diagnostic) string {
	line := d.Range.Start.Line
	switch flag := s.lines[line]; {
	case d.Range.Filename == commandLine && flag != "":
		return Printable(flag) + ": " + d.Summary
	case d.Range.Filename != commandLine && line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", s.ShownFile(d.Range.Filename), line, d.Range.Start.Column, d.Summary)
	}
	return d.Summary
}

// grantedAt is where the file grants less.
func grantedAt(s *Source, d diag.Diagnostic) string {
	for _, r := range d.Related {
		if r.Range.Start.Line > 0 {
			return fmt.Sprintf(" (%s:%d:%d)", s.ShownFile(r.Range.Filename), r.Range.Start.Line, r.Range.Start.Column)
		}
	}
	return ""
}

// flagsFS has one file, the text of the flags. Of the project's directory it shows only
// what links lead to.
type flagsFS struct {
	projectFS
	text []byte
}

// Open implements [fs.FS].
func (f flagsFS) Open(name string) (fs.File, error) {
	if name != commandLine {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &keptFile{kept: &kept{info: textInfo(len(f.text))}, from: bytes.NewReader(f.text)}, nil
}

// Stat implements [fs.StatFS].
func (f flagsFS) Stat(name string) (fs.FileInfo, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	return file.Stat()
}

// Lstat implements [fs.ReadLinkFS].
func (f flagsFS) Lstat(name string) (fs.FileInfo, error) {
	if name == commandLine {
		return f.Stat(name)
	}
	return f.projectFS.Lstat(name)
}

// textInfo describes a text of that many bytes as a file.
type textInfo int

func (t textInfo) Name() string       { return commandLine }
func (t textInfo) Size() int64        { return int64(t) }
func (t textInfo) Mode() fs.FileMode  { return 0o444 }
func (t textInfo) ModTime() time.Time { return time.Time{} }
func (t textInfo) IsDir() bool        { return false }
func (t textInfo) Sys() any           { return nil }

package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/tokens"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/workshop"
)

// Source is one workshop file on disk and what was found in it.
type Source struct {
	// Path is the absolute path of the file.
	Path string
	// shownDir is Dir as the user would write it; diagnostics name files by it.
	shownDir string
	// Workshop is nil exactly when Diagnostics has errors.
	Workshop    *workshop.Workshop
	Diagnostics diag.List
	// mounts of the workers; with errors those that can be read.
	mounts []workshop.Mount
	// read are the texts that it was loaded from, by their names in the project.
	read map[string]*kept
	// variables are the names of files of variables, envFiles those of the command line.
	variables, envFiles []string
	// named are the absolute paths of files of the command line, by their names.
	named map[string]string
	// flags: it is made of the flags of a run, and of no file.
	flags bool
	// lines are the flags of a run, by the lines of their text.
	lines map[int]string
	// lock is nil where there is none, or one with lockProblems.
	lock *lock.Lock
	// from opens what it extends and imports; nil: it can't.
	from         *sources
	lockText     []byte
	lockProblems diag.List
	lockChecked  bool // by [Env.CheckLock]
	allowed      bool // by [Env.MayRun]
}

// Root is the project's directory, which the file is in.
func (s *Source) Root() string { return filepath.Dir(s.Path) }

// text is the file's; nil where it wasn't read.
func (s *Source) text() []byte {
	if k := s.read[s.Base()]; k != nil {
		return k.text
	}
	return nil
}

// Base is the file's name, as diagnostics have it.
func (s *Source) Base() string { return filepath.Base(s.Path) }

// Read loads one file. Problems of the file are in the result, an error
// is a file that can't be read at all.
func (env *Env) Read(ctx context.Context, file string) (*Source, error) {
	return env.read(ctx, file, reading{})
}

// reading says how a file is read.
type reading struct {
	// symbols leaves variables as they are, and reads no files of them.
	symbols bool
	// like: the file is to take the place of this one, and has its sources.
	like *Source
	// text is what the file is to be, which need not be there; nil: what it is.
	text []byte
}

// read is Read in another way.
func (env *Env) read(ctx context.Context, file string, how reading) (*Source, error) {
	s := &Source{Path: filepath.Clean(file)}
	s.shownDir = env.Shown(s.Root())
	s.read = map[string]*kept{}
	fsys := projectFS{dir: s.Root(), named: map[string]string{}, read: s.read}
	follow := env.Settings.File != "" && env.Abs(env.Settings.File) == file
	if follow {
		fsys.named[s.Base()] = file
	}
	if how.text != nil {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			info, err = fs.Stat(source.Tree{s.Base(): how.text}.FS(), s.Base())
		}
		if err != nil {
			return nil, err
		}
		s.read[s.Base()] = &kept{info: info, text: how.text, whole: true}
	}
	var envFiles []string
	for _, f := range env.Settings.EnvFiles {
		name, err := fsys.add(s.Root(), env.Abs(f))
		if err != nil {
			return nil, Fail(CodeUsage, "--env-file %s: %w", f, PlainPathError(err))
		}
		envFiles = append(envFiles, name)
	}
	if s.named = fsys.named; !how.symbols {
		s.variables = append(slices.Clone(envFiles), ".env")
	}
	s.envFiles = envFiles
	o := workshop.Options{
		Lookup:   env.Lookup,
		EnvFiles: envFiles,
		Home:     env.Home,
		Homes:    facts.Homes(os.Getuid(), env.Lookup),
		Root:     filepath.ToSlash(s.Root()),

		FollowFile: follow,
		Symbols:    how.symbols,
	}
	s.readLock(fsys, env.RepairLock)
	if s.from = env.sourcesFor(s); how.like != nil {
		s.from = how.like.from
	}
	o.OpenSource = s.from.open
	s.Workshop, s.Diagnostics = workshop.Load(ctx, fsys, s.Base(), o)
	if !env.RepairLock {
		s.Diagnostics = append(s.Diagnostics, s.lockProblems...)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.Workshop == nil {
		s.mounts = workshop.Mounts(fsys, s.Base(), o)
	} else {
		for i := range s.Workshop.Workers {
			s.mounts = append(s.mounts, s.Workshop.Workers[i].Container.Mounts...)
		}
	}
	if s.Diagnostics.HasErrors() {
		s.Workshop = nil
	}
	return s, nil
}

// sources returns the texts that the diagnostics quote, by the names they have
// in the project's directory or, with its address, in a source: nothing else is quoted.
func (s *Source) sources() map[string][]byte {
	out := workshop.Sources(projectFS{dir: s.Root(), read: s.read}, s.Diagnostics)
	add := func(name string) {
		if !isAddress(name) || s.from == nil || out[name] != nil {
			return
		}
		if text := s.from.text(name); text != nil {
			out[name] = tokens.Mask(text)
		}
	}
	for _, d := range s.Diagnostics {
		add(d.Range.Filename)
		for _, r := range d.Related {
			add(r.Range.Filename)
		}
	}
	return out
}

// hashed begins what stands for a text that isn't kept.
const hashed = "sha256:"

// definition returns the texts that decide what workers are granted. Files of variables
// do only where the workshop file has variables; they may hold secrets, so that a hash
// stands for their text.
func (s *Source) definition() facts.Definition {
	d := facts.Definition{Dir: RealPath(s.Root()), Known: map[string]string{}, Raw: map[string][]byte{}}
	if s.flags {
		return d // a person typed them
	}
	at := func(name string) string {
		// From the real directory "..", as in the name of a file of --env-file, may lead
		// elsewhere.
		if file, ok := s.named[name]; ok && !filepath.IsLocal(filepath.FromSlash(name)) {
			return file
		}
		return filepath.Join(d.Dir, filepath.FromSlash(name))
	}
	hasVariables := bytes.ContainsRune(s.text(), '$')
	for name, k := range s.read {
		switch {
		case !slices.Contains(s.variables, name):
			d.Known[at(name)] = string(k.text)
		case hasVariables:
			d.Known[at(name)] = fmt.Sprintf("%s%x", hashed, sha256.Sum256(k.text))
		default:
			continue
		}
		d.Raw[at(name)] = k.text
	}
	for _, name := range s.variables {
		if s.read[name] == nil && hasVariables {
			d.Absent = append(d.Absent, at(name))
		}
	}
	return d
}

// Shown are the diagnostics and texts with the names that the user would
// write: relative to the working directory.
func (s *Source) Shown() (diag.List, map[string][]byte) {
	list := slices.Clone(s.Diagnostics)
	for i, d := range list {
		list[i].Range.Filename = s.ShownFile(d.Range.Filename)
		list[i].Hint = s.shownCommands(d.Hint, d.Range.Filename)
		list[i].Related = slices.Clone(d.Related)
		for j, r := range d.Related {
			list[i].Related[j].Range.Filename = s.ShownFile(r.Range.Filename)
		}
	}
	texts := map[string][]byte{}
	for name, data := range s.sources() {
		texts[s.ShownFile(name)] = data
	}
	return list, texts
}

// shownCommands names the file of a hint's commands as the user would write it: they
// end in it, and are pasted where one stands.
func (s *Source) shownCommands(hint, name string) string {
	return strings.ReplaceAll(hint, " "+shellquote.Path(name)+"`", " "+shellquote.Path(s.ShownFile(name))+"`")
}

// ShownFile is a file of the project as the user would write it.
func (s *Source) ShownFile(name string) string {
	if name == "" || filepath.IsAbs(name) || isAddress(name) {
		return name
	}
	return path.Join(filepath.ToSlash(s.shownDir), name)
}

// isAddress reports whether a file is one of another repository, as diagnostics name it.
func isAddress(name string) bool { return strings.Contains(name, "://") }

// projectFS is the project directory, out of which no symbolic link leads,
// together with single files that the command line named.
type projectFS struct {
	dir   string            // of the project
	named map[string]string // name in the file system → absolute path
	read  map[string]*kept  // what was read of files, by name; nil keeps nothing
}

// ProjectDir is a project directory, out of which no symbolic link leads.
func ProjectDir(dir string) fs.FS { return projectFS{dir: dir} }

// add makes one file of the command line readable and returns its name.
func (f projectFS) add(dir, file string) (string, error) {
	if info, err := os.Stat(file); err != nil {
		return "", err
	} else if info.IsDir() {
		return "", errors.New("is a directory")
	}
	rel, err := filepath.Rel(dir, file)
	if err != nil { // another volume on Windows
		rel = file
	}
	name := filepath.ToSlash(rel)
	f.named[name] = file
	return name, nil
}

// Open implements [fs.FS]. It never waits: a worker may have put a named pipe
// in the place of a file (B60). A file that was read as a whole is the same when it is
// opened again, whatever it is by then (B8).
func (f projectFS) Open(name string) (fs.File, error) {
	if k := f.read[name]; k != nil && k.whole {
		return &keptFile{kept: &kept{info: k.info}, from: bytes.NewReader(k.text)}, nil
	}
	file, err := f.open(name)
	if err != nil || f.read == nil {
		return file, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return file, err
	}
	k := &kept{info: info}
	f.read[name] = k
	return &keptFile{kept: k, from: file, close: file}, nil
}

// kept is what was read of a file.
type kept struct {
	info  fs.FileInfo
	text  []byte
	whole bool
}

// keptFile is a file whose text is kept.
type keptFile struct {
	*kept
	from  io.Reader
	close io.Closer // nil for a text
}

// Read implements [io.Reader].
func (f *keptFile) Read(b []byte) (int, error) {
	n, err := f.from.Read(b)
	f.text, f.whole = append(f.text, b[:n]...), f.whole || err == io.EOF
	return n, err
}

// Stat implements [fs.File].
func (f *keptFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements [fs.File].
func (f *keptFile) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close.Close()
}

func (f projectFS) open(name string) (fs.File, error) {
	if file, ok := f.named[name]; ok {
		return boundedfile.Open(file)
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	var file *os.File
	err := f.inRoot(func(r *os.Root) (err error) {
		file, err = boundedfile.OpenIn(r, filepath.FromSlash(name))
		return err
	})
	if err != nil {
		return nil, err // and no file: a nil *os.File is not a nil fs.File
	}
	return file, nil
}

// Stat implements [fs.StatFS]: a device isn't opened to see what it is.
func (f projectFS) Stat(name string) (info fs.FileInfo, err error) {
	if file, ok := f.named[name]; ok {
		return os.Stat(file)
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	err = f.inRoot(func(r *os.Root) error { info, err = r.Stat(filepath.FromSlash(name)); return err })
	if k := f.read[name]; errors.Is(err, fs.ErrNotExist) && k != nil && k.whole {
		return k.info, nil // as Open has it
	}
	return info, err
}

func (f projectFS) inRoot(do func(*os.Root) error) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// ReadLink and Lstat implement [fs.ReadLinkFS]: the loader looks through
// symbolic links of mount sources (B7).
func (f projectFS) ReadLink(name string) (to string, err error) {
	err = f.inRoot(func(r *os.Root) error { to, err = r.Readlink(filepath.FromSlash(name)); return err })
	return filepath.ToSlash(to), err
}

// Lstat is described at ReadLink.
func (f projectFS) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.inRoot(func(r *os.Root) error { info, err = r.Lstat(filepath.FromSlash(name)); return err })
	return info, err
}

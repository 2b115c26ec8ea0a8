package app

import (
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
	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/tokens"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/source"
	"github.com/llmdo/workshop/workshop"
)

// committed are the files that a workshop is read from, with their texts of the last
// commit, which is returned too. Each must be a file of the project, and as it is there.
func (env *Env) committed(ctx context.Context, s *Source) (source.Tree, string, error) {
	refuse := func(lines []string) *Failure {
		return Fail(CodeRefused, "%s can't be published:%s", env.Shown(s.Path), listed(lines))
	}
	if !slices.Contains(fileNames, s.Base()) {
		return nil, "", Fail(CodeRefused, "%s can't be published: others look for workshop.yaml", env.Shown(s.Path)).Hint("rename it, or put it into a directory of its own as workshop.yaml")
	}
	files := s.compiledFiles()
	wrong := append(s.unsharedFiles(files), s.outsideMounts()...)
	if len(wrong) > 0 {
		return nil, "", refuse(wrong).Hint("others would get them, or have others in their place: take them out of the workshop")
	}
	head, err := git.Tree(ctx, s.Root(), "HEAD")
	if err != nil {
		return nil, "", notCommitted(ctx, err)
	}
	defer head.Close()
	tree, project := source.Tree{}, projectFS{dir: s.Root()}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := boundedfile.ReadFS(head, name, workshop.MaxFileSize)
		here, there := plainFile(project, name), plainFile(head, name)
		switch {
		case here != nil:
			err = here
		case errors.Is(there, fs.ErrNotExist):
			err = errors.New("is not committed")
		case there != nil:
			err = there
		case err == nil && lock.HashText(text) != lock.HashText(files[name]):
			err = errors.New("is not as it is committed")
		}
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if err != nil {
			wrong = append(wrong, name+" "+err.Error())
		}
		tree[name] = text
	}
	if len(wrong) > 0 {
		return nil, "", refuse(wrong).Hint("what is published is a commit: `git add` and `git commit` the files")
	}
	return tree, head.Commit, nil
}

// notCommitted says why there is no commit.
func notCommitted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := Fail(CodeRefused, "what is published is a commit of a git repository: %w", err)
	if errors.Is(err, git.ErrNoGit) {
		return f.Hint("install git")
	}
	if _, said := errors.AsType[*git.Error](err); said || strings.Contains(err.Error(), "there is no commit") {
		return f.Hint("commit the workshop first: `git init`, `git add` its files, `git commit`")
	}
	return f
}

// plainFile fails unless a name is a regular file to which no symbolic link leads.
func plainFile(fsys fs.FS, name string) error {
	for at := name; at != "."; at = path.Dir(at) {
		info, err := fs.Lstat(fsys, at)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return errors.New("is, or is below, a symbolic link")
		case at == name && !info.Mode().IsRegular():
			return errors.New("is not a regular file")
		}
	}
	return nil
}

// unsharedFiles are those of files that nobody means to publish, whatever refers to them,
// and why.
func (s *Source) unsharedFiles(files map[string][]byte) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		kind := tokens.In(string(files[name]))
		switch base := strings.ToLower(path.Base(name)); {
		case !filepath.IsLocal(filepath.FromSlash(name)):
			wrong = append(wrong, name+" is outside of the project")
		case base == ".env" || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env") || slices.Contains(s.envFiles, name):
			wrong = append(wrong, name+" is a file of variables")
		case slices.ContainsFunc(keyFiles, func(p string) bool { ok, _ := path.Match(p, base); return ok }):
			wrong = append(wrong, name+" has the name of a file of keys")
		case kind != "":
			wrong = append(wrong, name+" has "+kind)
		}
	}
	return wrong
}

// keyFiles are names of files that have keys and passwords, in lower case.
var keyFiles = []string{
	"*.key", "*.pem", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".dockercfg", "credentials", "credentials.json",
}

// outsideMounts are the mounts whose source isn't below the project: with others it would
// be a directory of their machine.
func (s *Source) outsideMounts() (wrong []string) {
	seen := map[string]bool{}
	lists := [][]workshop.Mount{s.Workshop.Container.Mounts}
	for i := range s.Workshop.Workers {
		lists = append(lists, s.Workshop.Workers[i].Container.Mounts)
	}
	for _, m := range slices.Concat(lists...) {
		from := m.Source.V
		if t := m.Source.Source.Template; t != "" {
			from = t
		}
		inside := m.Source.Source.Template == "" && (from == "" || filepath.IsLocal(filepath.FromSlash(from))) && !strings.HasPrefix(from, "~")
		line := fmt.Sprintf("%s: the mount %s is outside of the project, or may be", placeOf(m.At.Range), from)
		if !inside && !seen[line] {
			seen[line] = true
			wrong = append(wrong, line)
		}
	}
	return wrong
}

// placeOf is FILE:LINE.
func placeOf(at diag.Range) string { return fmt.Sprintf("%s:%d", at.Filename, at.Start.Line) }

// checkShared refuses files that others can't use.
func (env *Env) checkShared(ctx context.Context, s *Source, id source.ID, files source.Tree) error {
	own, texts, err := s.asShared(ctx, id, files)
	if err != nil || len(own) == 0 {
		return err
	}
	env.event(Event{Kind: Problems, Diagnostics: own, Sources: texts})
	return Fail(CodeInvalid, "%s can't be used by others: %s", env.Shown(s.Path), Count(len(own), "error"))
}

// asShared loads the files as others would: a base by what extends it, else by what
// imports it. It returns the errors of the files themselves, and their texts.
func (s *Source) asShared(ctx context.Context, id source.ID, files source.Tree) (own diag.List, texts map[string][]byte, err error) {
	text := "workshop: {name: check, extends: {from: %q}}\n"
	if s.Workshop.Needs {
		text = "workshop: {name: check, container: {image: host}, imports: [{as: check, from: %q}]}\n"
	}
	project := source.Tree{"workshop.yaml": fmt.Appendf(nil, text, id.From())}
	_, list := workshop.Load(ctx, project.FS(), "workshop.yaml", workshop.Options{OpenSource: func(ctx context.Context, ref workshop.SourceRef) (workshop.SourceFiles, error) {
		if ref.From != id.From() {
			return s.from.open(ctx, ref)
		}
		return workshop.SourceFiles{ID: id.String(), Files: files.FS()}, nil
	}})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	texts = map[string][]byte{}
	for _, d := range list {
		name, of := strings.CutPrefix(d.Range.Filename, id.From()+"/")
		if !of || d.Severity != diag.Error {
			continue
		}
		d.Range.Filename, d.Related = s.ShownFile(name), nil
		texts[d.Range.Filename] = files[name]
		own = append(own, d)
	}
	return own, texts, nil
}

// unshared are the problems of a file that others are to extend or import, and can't. One
// that runs by itself, too, may have what is no base's: the rest is a warning there.
func (s *Source) unshared(ctx context.Context) (diag.List, map[string][]byte, error) {
	if !s.Workshop.Needs && len(s.Workshop.Open) == 0 {
		return nil, nil, nil
	}
	id, err := source.ParseID("git+https://localhost/" + s.Workshop.Name.V)
	if err != nil {
		return nil, nil, err
	}
	files := source.Tree(s.compiledFiles())
	files[fileNames[0]] = s.text() // what others look for, whatever it is called yet
	list, texts, err := s.asShared(ctx, id, files)
	for i := range list {
		if list[i].Range.Filename == s.ShownFile(fileNames[0]) {
			list[i].Range.Filename = s.ShownFile(s.Base())
		}
	}
	if s.Runs() != nil {
		return list, texts, err
	}
	list = slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Code == "base-key" })
	for i := range list {
		list[i].Severity, list[i].Summary = diag.Warning, "nobody can extend this: "+list[i].Summary
	}
	return list, texts, err
}

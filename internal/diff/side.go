package diff

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/workshop"
)

// Side is one of the two versions.
type Side struct {
	// Workshop is nil where there is no file.
	Workshop *workshop.Workshop
	// Files are texts beside it that grant or guard, by their paths in the fs.FS:
	// Dockerfiles, and the gate, see IsGate.
	Files map[string]string
	// Lock is the name of the lock; empty: there is none.
	Lock string
	// Images are the digests of images by their references, from the lock.
	Images map[string]string
	// Variables are those that `.env`, next to the file, sets of the ones that the
	// workshop uses; their values are never shown.
	Variables map[string]string
}

// maxGuard bounds a file of the gate, in bytes, and maxGates their number.
const (
	maxGuard = 256 << 10
	maxGates = 256
)

// Read reads a version: a workshop.yaml, with all that Compare looks at. root is the
// path of fsys on the machine, or empty; open opens the sources of the file. A file that isn't there is a side without a
// workshop; other problems are in the list, and then the side is not to be compared.
func Read(ctx context.Context, fsys fs.FS, file, root string, open func(context.Context, workshop.SourceRef) (workshop.SourceFiles, error)) (Side, diag.List) {
	s := Side{Files: map[string]string{}}
	s.gates(fsys)
	dir := path.Dir(file)
	s.lockFile(fsys, lock.FileOf(file))
	if _, err := fs.Stat(fsys, file); err != nil && isAbsent(err) {
		return s, nil
	}
	w, list := workshop.Load(ctx, fsys, file, workshop.Options{Symbols: true, Root: root, OpenSource: open})
	if w == nil {
		return s, list
	}
	s.Workshop = w
	for i := range w.Workers {
		if b := w.Workers[i].Container.Build; b != nil && b.Context.Source.Template+b.Dockerfile.Source.Template == "" {
			s.keep(fsys, path.Join(dir, b.Context.V, b.Dockerfile.V))
		}
	}
	s.Variables = workshop.ProjectVariables(fsys, w, workshop.Options{})
	return s, nil
}

// keep reads a file that is to be compared; what can't be read is as if it weren't
// there, on both sides.
func (s *Side) keep(fsys fs.FS, name string) {
	if !fs.ValidPath(name) {
		return
	}
	if data, err := boundedfile.ReadFS(fsys, name, maxGuard); err == nil {
		s.Files[name] = string(data)
	}
}

// lockFile reads the lock. One that can't be read is there, and pins nothing.
func (s *Side) lockFile(fsys fs.FS, name string) {
	data, err := lock.Read(fsys, name)
	if err != nil && isAbsent(err) {
		return
	}
	s.Lock = name
	l, _ := lock.Parse(name, data)
	if l == nil {
		return
	}
	s.Images = map[string]string{}
	for ref, image := range l.Images {
		s.Images[ref] = image.Digest
	}
}

// gates reads what guards a repository: the workflows that run `workshop diff`, and the
// owners of the workshop's files.
func (s *Side) gates(fsys fs.FS) {
	names := []string{".gitlab-ci.yml", "Jenkinsfile", "azure-pipelines.yml", ".circleci/config.yml"}
	for _, dir := range []string{".github/workflows", ".forgejo/workflows", ".gitea/workflows", ".woodpecker"} {
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxGates)] {
			if ext := path.Ext(e.Name()); ext == ".yml" || ext == ".yaml" {
				names = append(names, path.Join(dir, e.Name()))
			}
		}
	}
	for _, name := range slices.Concat(names, owners) {
		s.keep(fsys, name)
		if text := s.Files[name]; !slices.Contains(owners, name) && !IsGate(text) {
			delete(s.Files, name)
		}
	}
}

// owners are the places of the list of code owners.
var owners = []string{"CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS"}

// IsGate reports whether the text of a workflow, without its comments, runs the
// comparison or checks the lock.
func IsGate(text string) bool {
	for line := range strings.Lines(text) {
		if line, _, _ = strings.Cut(" "+line, " #"); strings.Contains(line, "workshop diff") || strings.Contains(line, "workshop lock --check") {
			return true
		}
	}
	return false
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"golang.org/x/mod/module"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Limits of the files of one fetch.
const (
	maxFetchedFiles = 256
	maxFetchedFile  = 1 << 20 // bytes
	maxFetched      = 8 << 20 // bytes of all
)

// Fetched are the files of a directory of a remote repository.
type Fetched struct {
	Commit string
	// Tag is the annotated tag that was fetched, as git hashes it, with its signature;
	// nil for a branch, a commit or another tag.
	Tag []byte
	// Files by their paths below the directory.
	Files map[string][]byte
}

// ErrNoDirectory means that a commit lacks the directory that is wanted of it.
var ErrNoDirectory = errors.New("has no directory")

// Fetch fetches one commit: that of a branch or tag by its full name (refs/tags/v1.4.2), or
// one by its whole name, and returns the files of a directory in it, "" for all. Nothing is
// kept on the disk, and nothing is checked out: no filter, attribute, link or submodule has
// a meaning.
func (r Remote) Fetch(ctx context.Context, want, dir string) (*Fetched, error) {
	if !validRef(want) && !objectName().MatchString(want) {
		return nil, fmt.Errorf("%q can't be fetched: %w", clip.Bytes(want, 80), errNotFetchable)
	}
	if dir != "" && !fs.ValidPath(dir) {
		return nil, fmt.Errorf("the directory %q of %s isn't a clean path below it", clip.Bytes(dir, 80), r)
	}
	repo, remove, err := emptyRepository(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	const local = "refs/w/1"
	fetch := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--depth=1"}
	if _, err := r.talk(ctx, repo, fetch, "+"+want+":"+local); err != nil {
		return nil, err
	}
	b, err := newBatch(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer b.close()
	out := &Fetched{Files: map[string][]byte{}}
	object, kind, content, err := b.ask(local, maxBlob)
	if err != nil {
		return nil, err
	}
	if kind == "tag" {
		out.Tag = content
	}
	if out.Commit, err = b.commit(local); err != nil {
		return nil, err
	}
	if objectName().MatchString(want) && out.Commit != want && object != want {
		return nil, fmt.Errorf("%s sent the commit %s for %s", r, out.Commit, want)
	}
	list, err := output(ctx, repo, "ls-tree", "-r", "-z", "-l", "--full-tree", out.Commit+":"+dir)
	if said, ok := errors.AsType[*Error](err); ok && strings.Contains(said.Said, "Not a valid object name") {
		return nil, fmt.Errorf("%s %w %s at %s", r, ErrNoDirectory, dir, want)
	}
	if err != nil {
		return nil, err
	}
	return out, out.read(b, list)
}

// read takes the files of a listing, of which each must be one that every file system can
// hold.
func (f *Fetched) read(b *batch, list []byte) error {
	tree := &Files{entries: map[string]entry{}, dirs: map[string][]string{}}
	names, err := tree.listed(list)
	if err != nil {
		return err
	}
	if err := CheckNames(names); err != nil {
		return err
	}
	left := int64(maxFetched)
	for _, name := range names {
		e := tree.entries[name]
		shown := clip.Bytes(name, 200)
		switch {
		case e.kind == link:
			return fmt.Errorf("%q is a symbolic link, which can't be shared", shown)
		case e.kind == directory:
			return fmt.Errorf("%q is a submodule, which can't be shared", shown)
		case e.size > maxFetchedFile:
			return fmt.Errorf("%q has %d bytes, more than %d", shown, e.size, maxFetchedFile)
		case len(f.Files) == maxFetchedFiles:
			return fmt.Errorf("there are more than %d files", maxFetchedFiles)
		}
		if left -= e.size; left < 0 {
			return fmt.Errorf("the files have more than %d bytes", maxFetched)
		}
		if f.Files[name], err = b.blob(e.object); err != nil {
			return fmt.Errorf("%q: %w", shown, err)
		}
	}
	return nil
}

// CheckNames refuses names of files that not every file system can hold, together, as
// what they are.
func CheckNames(names []string) error {
	folded, dirs := map[string]string{}, map[string]bool{}
	for _, name := range names {
		if err := sharedName(name); err != nil {
			return fmt.Errorf("%q can't be shared: %w", clip.Bytes(name, 200), err)
		}
		for p := name; p != "."; p = path.Dir(p) {
			key := fold(p)
			if other, seen := folded[key]; seen && other != p {
				return fmt.Errorf("%q and %q differ in the case of letters alone", clip.Bytes(other, 200), clip.Bytes(p, 200))
			}
			folded[key], dirs[p] = p, dirs[p] || p != name
		}
	}
	for _, name := range names {
		if dirs[name] {
			return fmt.Errorf("%q is a file and a directory", clip.Bytes(name, 200))
		}
	}
	return nil
}

// fold is the same for names that differ in the case of letters alone, whatever a file
// system takes for that.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// sharedName refuses names that mean something else on some file system, by the rules of
// Go modules (golang.org/x/mod/module.CheckFilePath), or to git.
func sharedName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(strings.TrimRight(part, ". "), ".git") || strings.HasPrefix(strings.ToLower(part), "git~") {
			return errors.New("it is a name of git's own")
		}
	}
	return module.CheckFilePath(name)
}

// emptyRepository is a bare repository of ours without hooks, for one fetch.
func emptyRepository(ctx context.Context) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "workshop-git-*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if _, err = output(ctx, dir, "init", "--bare", "--quiet", "--template=", dir); err != nil {
		remove()
	}
	return dir, remove, err
}

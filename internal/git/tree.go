package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// maxEntries bounds the files of a tree.
const maxEntries = 500_000

// Tree opens the files that a directory of a repository has at a revision. dir is in its
// working tree. The caller closes it.
func Tree(ctx context.Context, dir, revision string) (*Files, error) {
	prefix, err := locate(ctx, dir)
	if err != nil {
		return nil, err
	}
	b, err := newBatch(ctx, dir)
	if err != nil {
		return nil, err
	}
	f := &Files{batch: b, entries: map[string]entry{}, dirs: map[string][]string{".": nil}}
	if f.Commit, err = b.commit(revision); err != nil {
		b.close()
		return nil, err
	}
	list, err := output(ctx, dir, "ls-tree", "-r", "-z", "-l", "--full-tree", f.Commit+":"+prefix)
	if err == nil {
		_, err = f.listed(list)
	} else if said, ok := errors.AsType[*Error](err); ok && prefix != "" && strings.Contains(said.Said, "Not a valid object name") {
		err = nil // the directory wasn't there
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return f, nil
}

// locate returns the path of a directory below the root of its working tree, and refuses
// repositories of which objects may be missing: git would fetch them, by a program that the
// repository names.
func locate(ctx context.Context, dir string) (prefix string, err error) {
	out, err := output(ctx, dir, "rev-parse", "--show-prefix", "--absolute-git-dir")
	if err != nil {
		return "", err
	}
	prefix, gitDir, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	prefix = strings.TrimSuffix(prefix, "/")
	if strings.ContainsAny(gitDir, "\n\x00") {
		return "", fmt.Errorf("the name of the directory %q, or of its repository, has a line break", clip.Bytes(prefix, 80))
	}
	if err := outside(gitDir, dir); err != nil {
		return "", err
	}
	out, err = output(ctx, dir, "config", "--includes", "--name-only", "--get-regexp", `^(remote\..*\.(promisor|partialclonefilter)|extensions\.partialclone)$`)
	if err == nil && len(bytes.TrimSpace(out)) > 0 {
		return "", errors.New("the repository is a partial clone (git-clone(1), --filter), and what it lacks would have to be fetched: run `git fetch --refetch --no-filter` after `git config --unset-all remote.origin.promisor`, or clone it without --filter")
	}
	if said, failed := errors.AsType[*Error](err); failed && said.Said != "exit status 1" { // 1: no such key
		return "", err
	}
	return prefix, nil
}

// outside refuses a repository that the directory is in, or is: its files may be those of
// a commit, which git takes for a bare repository (git-config(1), safe.bareRepository).
func outside(gitDir, dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(gitDir, real); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s is a git repository without a working tree, and no directory of one", gitDir)
	}
	return nil
}

// maxPath bounds the name of a file, in bytes: PATH_MAX, so that it can be checked out.
const maxPath = 4096

// listed adds what ls-tree -z -l prints, "MODE TYPE OBJECT SIZE\tPATH\0", and returns the
// paths.
func (f *Files) listed(list []byte) (names []string, err error) {
	for line := range bytes.SplitSeq(list, []byte{0}) {
		if len(line) == 0 {
			continue
		}
		head, name, ok := strings.Cut(string(line), "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 4 {
			return nil, fmt.Errorf("git ls-tree printed %q", clip.Bytes(string(line), 80))
		}
		if len(f.entries) >= maxEntries {
			return nil, fmt.Errorf("the tree has more than %d files", maxEntries)
		}
		if len(name) > maxPath {
			return nil, fmt.Errorf("the tree has a file whose name has %d bytes, more than %d", len(name), maxPath)
		}
		e := entry{object: fields[2]}
		switch fields[0] {
		case "100644", "100755", "100664":
			e.kind = regular
		case "120000":
			e.kind = link
		default: // a submodule, whose files are another repository's
			e.kind = directory
		}
		if e.kind != directory {
			if e.size, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
				return nil, fmt.Errorf("git ls-tree printed the size %q", fields[3])
			}
		}
		f.add(name, e)
		names = append(names, name)
	}
	return names, nil
}

// add adds a file and the directories above it.
func (f *Files) add(name string, e entry) {
	if path.Clean(name) != name || strings.HasPrefix(name, "/") || name == ".." || strings.HasPrefix(name, "../") {
		return // git writes no such names; fsck calls them errors
	}
	f.entries[name] = e
	for {
		dir, base := path.Dir(name), path.Base(name)
		list, known := f.dirs[dir]
		f.dirs[dir] = append(list, base)
		if known {
			return
		}
		f.entries[dir] = entry{kind: directory}
		name = dir
	}
}

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/git"
)

// Locked is what workshop.lock says of a source.
type Locked struct {
	Original string  // the version as workshop.yaml has it
	Ref      string  // refs/tags/v1.4.2
	Commit   string  // its name, in full
	Tree     string  // h1:… of the files
	Signed   *Signer // nil: nobody whom the settings name
}

// Latest asks the source for its branches and tags, chooses what a version means, and
// fetches it. The commit that is fetched is the one that was chosen. With signers, a
// signature that isn't one of theirs is an error; none is not.
func Latest(ctx context.Context, id ID, v Version, signers Signers) (Tree, Locked, error) {
	remote, err := id.Remote()
	if err != nil {
		return nil, Locked{}, err
	}
	refs, err := remote.Refs(ctx)
	if err != nil {
		return nil, Locked{}, fmt.Errorf("%s: %w", id, err)
	}
	ref, err := v.Resolve(refs)
	if err != nil {
		return nil, Locked{}, fmt.Errorf("%s: %w", id, err)
	}
	got, err := remote.Fetch(ctx, ref.Name, id.dir)
	if err != nil {
		return nil, Locked{}, fmt.Errorf("%s: %w", id, err)
	}
	if got.Commit != ref.Commit {
		return nil, Locked{}, fmt.Errorf("%s: %s moved from %s to %s just now: run the command again", id, ref.Name, ref.Commit, got.Commit)
	}
	t, l := Tree(got.Files), Locked{Original: v.String(), Ref: ref.Name, Commit: got.Commit}
	if l.Tree, err = t.Hash(); err != nil {
		return nil, Locked{}, fmt.Errorf("%s: %w", id, err)
	}
	if l.Signed, err = signers.signed(got.Tag, ref.Name, got.Commit); err != nil {
		return nil, Locked{}, fmt.Errorf("%s: %s: %w", id, ref.Name, err)
	}
	return t, l, nil
}

// signed returns who signed a tag; nil: nobody, or there are no signers. The tag must be
// of that name and commit: a signed one of another release may have been put in its place.
func (all Signers) signed(tag []byte, name, commit string) (*Signer, error) {
	if len(all) == 0 {
		return nil, nil
	}
	who, err := all.VerifyTag(tag, time.Now())
	switch {
	case errors.Is(err, ErrUnsigned):
		return nil, nil
	case err != nil:
		return nil, err
	}
	header, _, _ := bytes.Cut(tag, []byte("\n\n"))
	lines := strings.Split(string(header), "\n")
	want := []string{"object " + commit, "type commit", "tag " + strings.TrimPrefix(name, "refs/tags/")}
	for i, w := range want {
		if i >= len(lines) || lines[i] != w {
			return nil, fmt.Errorf("it is a tag that %s signed for something else: it lacks %q", who.By, w)
		}
	}
	return &who, nil
}

// fetchLocked fetches the commit of a lock: by its name, or, from a server that sends
// branches and tags alone, by the ref that it had.
func fetchLocked(ctx context.Context, id ID, l Locked) (Tree, error) {
	remote, err := id.Remote()
	if err != nil {
		return nil, err
	}
	got, err := remote.Fetch(ctx, l.Commit, id.dir)
	if said, ok := errors.AsType[*git.Error](err); ok {
		var moved error
		if got, moved = remote.Fetch(ctx, l.Ref, id.dir); moved == nil && got.Commit != l.Commit {
			moved = fmt.Errorf("%s is %s now, and the server doesn't send %s (%s)", l.Ref, got.Commit, l.Commit, said.Said)
		}
		err = moved
	}
	if err != nil {
		return nil, err
	}
	return got.Files, nil
}

// Store finds trees by their hashes.
type Store struct {
	Project *os.Root // with the vendor directory; nil: there is none
	Cache   Cache
	Offline bool
	// Accepted is asked before a source is contacted; an error ends it.
	Accepted func(ID, Locked) error
}

// ErrOffline means that a tree is neither vendored nor in the cache.
var ErrOffline = errors.New("it is neither vendored nor in the cache")

// Open returns a tree of the hash that a lock has: from the vendor directory, the cache,
// or the source itself, in this order. What was changed in one of them is an error, and
// isn't looked for in the next.
func (s Store) Open(ctx context.Context, id ID, l Locked) (Tree, error) {
	if s.Project != nil {
		t, err := Vendored(s.Project, id)
		if err == nil {
			if err := t.Is(l.Tree); err != nil {
				return nil, fmt.Errorf("%s/%s is not what workshop.lock has: %w", VendorDir, id.VendorName(), err)
			}
			return t, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	t, err := s.Cache.Get(l.Tree)
	if !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	if s.Offline {
		return nil, fmt.Errorf("%s at %s (%s): %w", id, l.Commit, l.Tree, ErrOffline)
	}
	if s.Accepted == nil {
		return nil, fmt.Errorf("%s at %s was accepted by nobody", id, l.Commit)
	}
	if err := s.Accepted(id, l); err != nil {
		return nil, err
	}
	if t, err = fetchLocked(ctx, id, l); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if err := t.Is(l.Tree); err != nil {
		return nil, fmt.Errorf("%s sent another tree for the commit %s: %w", id, l.Commit, err)
	}
	return t, s.Cache.Put(t)
}

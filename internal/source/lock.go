package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

// Release is what was fetched of a source.
type Release struct {
	Locked
	Files Tree
}

// Latest asks the source for its branches and tags, chooses what a version means that also
// others allow, and fetches it. The commit that is fetched is the one that was chosen. With
// signers, a signature that isn't one of all of theirs is a [SignatureError]; none is not.
func Latest(ctx context.Context, id ID, v Version, also []Version, signers []Signers) (Release, error) {
	fail := func(err error) (Release, error) { return Release{}, fmt.Errorf("%s: %w", id, err) }
	remote, err := id.Remote()
	if err != nil {
		return Release{}, err
	}
	refs, err := remote.Refs(ctx)
	if err != nil {
		return fail(err)
	}
	ref, err := v.Resolve(slices.DeleteFunc(slices.Clone(refs), func(r git.Ref) bool {
		return slices.ContainsFunc(also, func(other Version) bool { return !other.Allows(r.Name, r.Commit) })
	}))
	if err != nil && len(also) > 0 {
		err = fmt.Errorf("no release is within all versions that are wanted, %s: %s", versionsText(append(also, v)), tagsText(refs))
	}
	if err != nil {
		return fail(err)
	}
	got, err := remote.Fetch(ctx, ref.Name, id.dir)
	if err != nil {
		return fail(err)
	}
	if got.Commit != ref.Commit {
		return fail(fmt.Errorf("%s moved from %s to %s just now: run the command again", ref.Name, ref.Commit, got.Commit))
	}
	r := Release{Locked: Locked{Original: v.String(), Ref: ref.Name, Commit: got.Commit}, Files: got.Files}
	if r.Tree, err = r.Files.Hash(); err != nil {
		return fail(err)
	}
	if r.Signed, err = signerOf(signers, got.Tag, ref.Name, got.Commit); err != nil {
		return fail(fmt.Errorf("%s: %w", ref.Name, err))
	}
	return r, nil
}

// signerOf returns who signed a tag, as the first of the signers name it; nil: nobody, or
// there are no signers. All must know the key. The tag must be of that name and commit: a
// signed one of another release may have been put in its place.
func signerOf(signers []Signers, tag []byte, name, commit string) (*Signer, error) {
	var first *Signer
	for _, all := range signers {
		who, err := all.VerifyTag(tag, time.Now())
		switch {
		case errors.Is(err, ErrUnsigned):
			return nil, nil
		case err != nil:
			return nil, &SignatureError{err}
		case first == nil:
			first = &who
		}
	}
	if first == nil {
		return nil, nil
	}
	header, _, _ := bytes.Cut(tag, []byte("\n\n"))
	lines := strings.Split(string(header), "\n")
	want := []string{"object " + commit, "type commit", "tag " + strings.TrimPrefix(name, "refs/tags/")}
	for i, w := range want {
		if i >= len(lines) || lines[i] != w {
			return nil, &SignatureError{fmt.Errorf("it is a tag that %s signed for something else: it lacks %q", first, w)}
		}
	}
	return first, nil
}

// Verify fetches what a lock has by its ref, and returns who signed that: a key that all of
// the signers know. What nobody signed is a [SignatureError], too.
func Verify(ctx context.Context, id ID, l Locked, signers []Signers) (Tree, Signer, error) {
	fail := func(err error) (Tree, Signer, error) { return nil, Signer{}, fmt.Errorf("%s: %w", id, err) }
	remote, err := id.Remote()
	if err != nil {
		return nil, Signer{}, err
	}
	got, err := remote.Fetch(ctx, l.Ref, id.dir)
	if err != nil {
		return fail(err)
	}
	if got.Commit != l.Commit {
		return fail(&SignatureError{fmt.Errorf("%s is the commit %s now, and not %s: nobody can say who signed that", l.Ref, got.Commit, l.Commit)})
	}
	t := Tree(got.Files)
	if err := t.Is(l.Tree); err != nil {
		return fail(fmt.Errorf("another tree came for the commit %s: %w", l.Commit, err))
	}
	who, err := signerOf(signers, got.Tag, l.Ref, l.Commit)
	if err == nil && who == nil {
		err = &SignatureError{ErrUnsigned}
	}
	if err != nil {
		return fail(fmt.Errorf("%s: %w", l.Ref, err))
	}
	return t, *who, nil
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
	Project fs.FS // with the vendor directory; nil: there is none
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

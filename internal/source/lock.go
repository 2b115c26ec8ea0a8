package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/image"
)

// Locked is what workshop.lock says of a source.
type Locked struct {
	Original string  // the version as workshop.yaml has it
	Ref      string  // refs/tags/v1.4.2, also of a registry; a digest, if that is the version
	Commit   string  // its name, in full; in a registry the digest of the manifest
	Tree     string  // h1:… of the files
	Signed   *Signer // nil: nobody whom the settings name
}

// Release is what was fetched of a source.
type Release struct {
	Locked
	Files Tree
	// Newer is the tag of the newest release that the version doesn't allow; "" if what was
	// fetched is the newest.
	Newer string
}

// IsPublished reports whether a branch or tag of a source points at a locked commit now. What
// a registry has in a repository was written by who may write to it.
func IsPublished(ctx context.Context, id ID, l Locked) (bool, error) {
	if id.scheme == ociScheme {
		return true, nil
	}
	from, err := id.origin()
	if err != nil {
		return false, err
	}
	refs, err := from.refs(ctx, Version{})
	if err != nil {
		return false, fmt.Errorf("%s: %w", id, err)
	}
	return slices.ContainsFunc(refs, func(r git.Ref) bool { return r.Commit == l.Commit }), nil
}

// Latest asks the source for its branches and tags, chooses what a version means that also
// others allow, and fetches it. The commit that is fetched is the one that was chosen. With
// signers, a signature that isn't one of all of theirs is a [SignatureError]; none is not.
func Latest(ctx context.Context, id ID, v Version, also []Version, signers []Signers) (Release, error) {
	fail := func(err error) (Release, error) { return Release{}, fmt.Errorf("%s: %w", id, err) }
	from, err := id.origin()
	if err != nil {
		return Release{}, err
	}
	refs, err := from.refs(ctx, v)
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
		return fail(&VersionError{err})
	}
	got, err := from.fetch(ctx, ref.Name)
	if errors.Is(err, image.ErrNoArtifact) {
		if has, listed := from.refs(ctx, Version{}); listed == nil && !v.names() {
			err = v.noTag(has)
		}
		err = &VersionError{err}
	}
	if err != nil {
		return fail(err)
	}
	if got.commit != ref.Commit && ref.Commit != "" {
		return fail(fmt.Errorf("%s moved from %s to %s just now: run the command again", ref.Name, ref.Commit, got.commit))
	}
	r := Release{Locked: Locked{Original: v.String(), Ref: ref.Name, Commit: got.commit}, Files: got.files, Newer: newerThan(ref.Name, refs)}
	if r.Tree, err = r.Files.Hash(); err != nil {
		return fail(err)
	}
	if r.Signed, err = got.signer(ctx, signers, ref.Name); err != nil {
		return fail(fmt.Errorf("%s: %w", ref.Name, err))
	}
	return r, nil
}

// Verify fetches what a lock has, and returns who signed that: a key that all of the
// signers know. What nobody signed is a [SignatureError], too.
func Verify(ctx context.Context, id ID, l Locked, signers []Signers) (Tree, Signer, error) {
	fail := func(err error) (Tree, Signer, error) { return nil, Signer{}, fmt.Errorf("%s: %w", id, err) }
	from, err := id.origin()
	if err != nil {
		return nil, Signer{}, err
	}
	got, err := from.signedLocked(ctx, l)
	if err != nil {
		return fail(err)
	}
	if err := got.files.Is(l.Tree); err != nil {
		return fail(fmt.Errorf("another tree came for the commit %s: %w", l.Commit, err))
	}
	who, err := got.signer(ctx, signers, l.Ref)
	if err == nil && who == nil {
		err = &SignatureError{ErrUnsigned}
	}
	if err != nil {
		return fail(fmt.Errorf("%s: %w", l.Ref, err))
	}
	return got.files, *who, nil
}

// fetchLocked fetches the commit of a lock.
func fetchLocked(ctx context.Context, id ID, l Locked) (Tree, error) {
	from, err := id.origin()
	if err != nil {
		return nil, err
	}
	got, err := from.locked(ctx, l)
	return got.files, err
}

// Store finds trees by their hashes.
type Store struct {
	Project fs.FS // with the vendor directory; nil: there is none
	// Also are projects in whose vendor directories a tree may be, and where one with
	// another hash is passed over.
	Also    []fs.FS
	Cache   Cache
	Offline bool
	// Accepted is asked before a source is contacted; an error ends it.
	Accepted func(ID, Locked) error
}

// ErrVendored means that what is vendored is of another lock, or was changed.
var ErrVendored = errors.New("is not what workshop.lock has")

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
				return nil, fmt.Errorf("%s/%s %w: %w", VendorDir, id.VendorName(), ErrVendored, err)
			}
			return t, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, project := range s.Also {
		if t, err := Vendored(project, id); err == nil && t.Is(l.Tree) == nil {
			return t, nil
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

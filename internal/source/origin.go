package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/git"
)

// origin is where the releases of a source are: a repository of git, or of a registry.
type origin interface {
	// refs lists what a version can mean; the commit is empty where only a fetch says it.
	refs(ctx context.Context, v Version) ([]git.Ref, error)
	// fetch fetches what a ref is.
	fetch(ctx context.Context, ref string) (fetched, error)
	// locked fetches the commit of a lock, signedLocked as what was signed.
	locked(ctx context.Context, l Locked) (fetched, error)
	signedLocked(ctx context.Context, l Locked) (fetched, error)
}

// fetched is a commit with its files.
type fetched struct {
	commit string
	files  Tree
	// signer returns who signed it as that ref, as the first of the signers name it; nil:
	// nobody, or there are no signers. All must know the key. Another signature is a
	// [SignatureError].
	signer func(ctx context.Context, signers []Signers, ref string) (*Signer, error)
}

func (id ID) origin() (origin, error) {
	if id.scheme == ociScheme {
		return openOCI(id)
	}
	remote, err := id.Remote()
	return gitOrigin{remote, id.dir}, err
}

// gitOrigin is a directory of a repository of git.
type gitOrigin struct {
	remote git.Remote
	dir    string
}

func (o gitOrigin) refs(ctx context.Context, _ Version) ([]git.Ref, error) { return o.remote.Refs(ctx) }

func (o gitOrigin) fetch(ctx context.Context, want string) (fetched, error) {
	got, err := o.remote.Fetch(ctx, want, o.dir)
	if err != nil {
		return fetched{}, err
	}
	return fetched{got.Commit, got.Files, func(_ context.Context, signers []Signers, ref string) (*Signer, error) {
		return signerOf(signers, got.Tag, ref, got.Commit)
	}}, nil
}

// locked fetches the commit by its name, or, from a server that sends branches and tags
// alone, by the ref that it had.
func (o gitOrigin) locked(ctx context.Context, l Locked) (fetched, error) {
	got, err := o.fetch(ctx, l.Commit)
	if said, ok := errors.AsType[*git.Error](err); ok {
		var moved error
		if got, moved = o.fetch(ctx, l.Ref); moved == nil && got.commit != l.Commit {
			moved = fmt.Errorf("%s is %s now, and the server doesn't send %s (%s)", l.Ref, got.commit, l.Commit, said.Said)
		}
		err = moved
	}
	return got, err
}

// signedLocked fetches the tag: it has the signature.
func (o gitOrigin) signedLocked(ctx context.Context, l Locked) (fetched, error) {
	got, err := o.fetch(ctx, l.Ref)
	if err == nil && got.commit != l.Commit {
		err = &SignatureError{fmt.Errorf("%s is the commit %s now, and not %s: nobody can say who signed that", l.Ref, got.commit, l.Commit)}
	}
	return got, err
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

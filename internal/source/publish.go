package source

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/internal/image"
)

// ErrOtherContent means that a tag is there with other content: who uses it would get
// something else than before.
var ErrOtherContent = errors.New("the tag is there with other content")

// Published is what [Publish] did.
type Published struct {
	// New reports whether the tag was not there, Signed whether a signature was added.
	New, Signed bool
}

// Publish puts an artifact that [Pack] made into the repository of a source, by its version
// as the tag, and its signature, nil for none. A tag that is there is never moved. The tag
// is put last: nobody finds what isn't whole.
func Publish(ctx context.Context, id ID, a image.Artifact, signature []byte) (out Published, err error) {
	if id.scheme != ociScheme {
		return out, fmt.Errorf("%s is not a repository of a registry", id)
	}
	fail := func(err error) (Published, error) { return out, fmt.Errorf("%s: %w", id.From(), err) }
	from, err := openOCI(id)
	if err != nil {
		return fail(err)
	}
	repo, err := from.repo.Pusher(ctx)
	if err != nil {
		return fail(err)
	}
	_, there, err := repo.Get(ctx, a.Version, workshopArtifact, maxLayer)
	switch {
	case errors.Is(err, image.ErrOtherType), err == nil && there != a.Digest():
		return fail(fmt.Errorf("%w: %s is %s, and this is %s", ErrOtherContent, a.Version, there, a.Digest()))
	case errors.Is(err, image.ErrNoArtifact):
		out.New = true
	case err != nil:
		return fail(fmt.Errorf("%s: %w", a.Version, err))
	}
	if signature != nil {
		s := signatureArtifact
		s.Layer, s.Subject, s.SubjectSize = signature, a.Digest(), int64(len(a.Manifest()))
		if out.New {
			if err := repo.Push(ctx, a, ""); err != nil {
				return fail(err)
			}
		}
		if out.Signed, err = sign(ctx, repo, s); err != nil {
			return fail(fmt.Errorf("its signature: %w", err))
		}
	}
	if out.New {
		if err := repo.Push(ctx, a, a.Version); err != nil {
			return fail(err)
		}
	}
	return out, nil
}

// sign adds a signature, unless there is one by the same key.
func sign(ctx context.Context, repo *image.Pusher, s image.Artifact) (added bool, err error) {
	key, err := signedBy([]byte(s.Subject), s.Layer, signNamespace)
	if err != nil {
		return false, err
	}
	list, err := repo.Referrers(ctx, s.Subject, signatureArtifact, maxSignature)
	if err != nil {
		return false, err
	}
	for _, other := range list {
		by, err := signedBy([]byte(s.Subject), other.Layer, signNamespace)
		if err == nil && ssh.FingerprintSHA256(by) == ssh.FingerprintSHA256(key) {
			return false, nil
		}
	}
	return true, repo.Push(ctx, s, "")
}

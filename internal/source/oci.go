package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/image"
)

// ociOrigin is a repository of a registry. Tags are refs by the names that git would give
// them.
type ociOrigin struct{ repo *image.Repository }

const (
	tagPrefix = "refs/tags/"
	// signNamespace is what signatures of manifests are for, as `ssh-keygen -Y sign -n` has
	// it.
	signNamespace = "workshop"
)

func openOCI(id ID) (ociOrigin, error) {
	repo, err := image.OpenRepository(id.host+"/"+id.path, nil)
	return ociOrigin{repo}, err
}

// refs lists the tags for a range alone: all else is asked for by its name.
func (o ociOrigin) refs(ctx context.Context, v Version) ([]git.Ref, error) {
	switch {
	case commitName().MatchString(v.text):
		return nil, &VersionError{errors.New("a registry has no commits: want a range of versions, a tag, or a digest sha256:…")}
	case image.IsDigest(v.text):
		return []git.Ref{{Name: v.text, Commit: v.text}}, nil
	case v.within == nil && image.IsTag(v.text):
		return []git.Ref{{Name: tagPrefix + v.text}}, nil
	}
	tags, err := o.repo.Tags(ctx)
	if err != nil {
		return nil, err
	}
	refs := make([]git.Ref, len(tags))
	for i, tag := range tags {
		refs[i].Name = tagPrefix + tag
	}
	return refs, nil
}

func (o ociOrigin) fetch(ctx context.Context, ref string) (fetched, error) {
	what := strings.TrimPrefix(ref, tagPrefix)
	a, digest, err := o.repo.Get(ctx, what, workshopArtifact, maxLayer)
	if err != nil {
		return fetched{}, fmt.Errorf("%s: %w", what, err)
	}
	files, err := unpack(a.Layer)
	if err != nil {
		return fetched{}, fmt.Errorf("%s: %w", what, err)
	}
	return fetched{digest, files, func(ctx context.Context, signers []Signers, ref string) (*Signer, error) {
		if len(signers) == 0 {
			return nil, nil
		}
		signatures, err := o.repo.Referrers(ctx, digest, signatureArtifact, maxSignature)
		if err != nil {
			return nil, fmt.Errorf("its signatures: %w", err)
		}
		who, err := signerOfAny(signers, signatures, digest)
		if tag, isTag := strings.CutPrefix(ref, tagPrefix); err == nil && who != nil && isTag && a.Version != tag {
			err = &SignatureError{fmt.Errorf("it is what %s signed as %q", who, a.Version)}
		}
		if err != nil {
			return nil, err
		}
		return who, nil
	}}, nil
}

// signerOfAny returns who made one of some signatures that all signers know; nil: there are
// none.
func signerOfAny(signers []Signers, signatures []image.Artifact, digest string) (*Signer, error) {
	var failed error
	for _, s := range signatures {
		var first *Signer
		var err error
		for _, all := range signers {
			var who Signer
			if who, err = all.verify([]byte(digest), s.Layer, signNamespace, time.Now()); err != nil {
				break
			}
			if first == nil {
				first = &who
			}
		}
		if err == nil {
			return first, nil
		}
		if failed == nil {
			failed = &SignatureError{err}
		}
	}
	return nil, failed
}

// locked fetches the manifest by its digest.
func (o ociOrigin) locked(ctx context.Context, l Locked) (fetched, error) {
	if !image.IsDigest(l.Commit) {
		return fetched{}, fmt.Errorf("%q is not the digest of a manifest", l.Commit)
	}
	return o.fetch(ctx, l.Commit)
}

// signedLocked is locked: signatures are of the digest.
func (o ociOrigin) signedLocked(ctx context.Context, l Locked) (fetched, error) {
	return o.locked(ctx, l)
}

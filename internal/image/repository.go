package image

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Limits of a repository of artifacts, which are small.
const (
	maxBody      = 16 << 20 // bytes of any answer
	maxTags      = 10_000
	maxReferrers = 32
)

// Repository is one of a registry, with artifacts.
type Repository struct {
	ref    reference.Ref
	repo   name.Repository
	lookup func(string) (string, bool)
	puller *remote.Puller
}

// OpenRepository returns the repository REGISTRY/REPOSITORY. Nobody is contacted. lookup
// returns variables of the environment, for DOCKER_CONFIG; nil: Docker's own ways.
func OpenRepository(text string, lookup func(string) (string, bool)) (*Repository, error) {
	ref, err := reference.Parse(text)
	if err != nil {
		return nil, err
	}
	repo, err := name.NewRepository(text, name.StrictValidation)
	if err != nil {
		return nil, err
	}
	r := &Repository{ref: ref, repo: repo, lookup: lookup}
	r.puller, err = remote.NewPuller(clientOptions(ref, lookup, smallAnswers{dialer()})...)
	return r, err
}

// smallAnswers bounds the bodies of answers: some the library reads to their end.
type smallAnswers struct{ next http.RoundTripper }

func (s smallAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err == nil {
		resp.Body = &smallBody{resp.Body, maxBody}
	}
	return resp, err
}

type smallBody struct {
	io.ReadCloser
	left int64
}

func (b *smallBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the registry sends more than %d bytes", maxBody)
	}
	return n, err
}

// tagName is the grammar of a tag (distribution specification, "Pulling manifests").
var tagName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`) })

// IsTag reports whether a text can be a tag.
func IsTag(text string) bool { return tagName().MatchString(text) }

// IsDigest reports whether a text is the digest of a manifest.
func IsDigest(text string) bool { return checkDigest(text) == nil }

// identify is a tag or digest of the repository.
func (r *Repository) identify(what string) (name.Reference, error) {
	switch {
	case IsDigest(what):
		return r.repo.Digest(what), nil
	case IsTag(what):
		return r.repo.Tag(what), nil
	}
	return nil, fmt.Errorf("%.80q is not a tag or digest", what)
}

// Tags lists the tags of the repository.
func (r *Repository) Tags(ctx context.Context) ([]string, error) {
	ctx, cancel := within(ctx, manifestTimeout)
	defer cancel()
	tags, err := r.tags(ctx)
	return tags, r.explained(ctx, err)
}

func (r *Repository) tags(ctx context.Context) (tags []string, err error) {
	lister, err := r.puller.Lister(ctx, r.repo)
	for err == nil && lister.HasNext() {
		var page *remote.Tags
		if page, err = lister.Next(ctx); err != nil {
			break
		}
		before := len(tags)
		tags = append(tags, slices.DeleteFunc(page.Tags, func(t string) bool { return !IsTag(t) })...)
		if len(tags) > maxTags || len(tags) == before && page.Next != "" {
			return nil, fmt.Errorf("the list of tags has more than %d, or no end", maxTags)
		}
	}
	return tags, err
}

// Get returns an artifact of a tag or digest, and its digest. Types and the most bytes of
// its layer are what is wanted of it.
func (r *Repository) Get(ctx context.Context, what string, want Artifact, maxLayer int64) (Artifact, string, error) {
	ref, err := r.identify(what)
	if err != nil {
		return Artifact{}, "", err
	}
	ctx, cancel := within(ctx, manifestTimeout)
	defer cancel()
	a, digest, err := r.get(ctx, ref, want, maxLayer)
	return a, digest, r.explained(ctx, err)
}

func (r *Repository) get(ctx context.Context, ref name.Reference, want Artifact, maxLayer int64) (Artifact, string, error) {
	desc, err := r.puller.Get(ctx, ref)
	if err != nil {
		return Artifact{}, "", err
	}
	digest := digestOf(desc.Manifest)
	if d, ok := ref.(name.Digest); ok {
		digest = d.DigestStr()
	}
	data, err := readVerified(bytes.NewReader(desc.Manifest), "its manifest", descriptor{Digest: digest, Size: int64(len(desc.Manifest))}, maxArtifactManifest)
	if err != nil {
		return Artifact{}, "", err
	}
	a, layer, err := parseArtifact(data, want, maxLayer)
	if err != nil {
		return Artifact{}, digest, err
	}
	a.Layer, err = fetch(ctx, func(ctx context.Context, d descriptor) (io.ReadCloser, error) {
		l, err := r.puller.Layer(ctx, r.repo.Digest(d.Digest))
		if err != nil {
			return nil, err
		}
		return l.Compressed()
	}, "its content", layer, maxLayer)
	if err != nil {
		return Artifact{}, digest, err
	}
	return a, digest, nil
}

// Referrers are the artifacts about a manifest, of the type that is wanted.
func (r *Repository) Referrers(ctx context.Context, digest string, want Artifact, maxLayer int64) ([]Artifact, error) {
	if err := checkDigest(digest); err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, manifestTimeout)
	defer cancel()
	list, err := r.referrers(ctx, digest, want, maxLayer)
	return list, r.explained(ctx, err)
}

func (r *Repository) referrers(ctx context.Context, digest string, want Artifact, maxLayer int64) ([]Artifact, error) {
	index, err := remote.Referrers(r.repo.Digest(digest), remote.WithContext(ctx), remote.Reuse(r.puller))
	if err != nil {
		return nil, err
	}
	raw, err := index.RawManifest()
	if err != nil {
		return nil, err
	}
	var list v1.IndexManifest
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("its list of referrers is damaged: %w", err)
	}
	// Some registries take the type from the configuration.
	list.Manifests = slices.DeleteFunc(list.Manifests, func(d v1.Descriptor) bool {
		return d.ArtifactType != "" && d.ArtifactType != want.Type && d.ArtifactType != emptyType
	})
	if len(list.Manifests) > maxReferrers {
		return nil, fmt.Errorf("%s has more than %d referrers of type %s", digest, maxReferrers, want.Type)
	}
	sortfunc.Stable(list.Manifests, func(a, b v1.Descriptor) int { return cmp.Compare(a.Digest.String(), b.Digest.String()) })
	var out []Artifact
	for _, d := range list.Manifests {
		if err := checkDigest(d.Digest.String()); err != nil {
			return nil, err
		}
		a, _, err := r.get(ctx, r.repo.Digest(d.Digest.String()), want, maxLayer)
		switch {
		case errors.Is(err, ErrOtherType) || err == nil && a.Subject != digest:
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// within bounds the time for a registry.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("the registry took longer than %s", d))
}

// ErrNoArtifact means that the registry answered that it has no such repository, tag or
// digest.
var ErrNoArtifact = errors.New("the registry doesn't have it")

// explained says of an error what to do.
func (r *Repository) explained(ctx context.Context, err error) error {
	var status *transport.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &status) && status.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrNoArtifact, statusHint(status, r.ref))
	case errors.As(err, &status):
		return fmt.Errorf("%s: %s", clip.Bytes(err.Error(), 300), statusHint(status, r.ref))
	}
	return err
}

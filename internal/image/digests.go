package image

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/llmdo/workshop/internal/image/reference"
)

// Digests are what a registry has for a reference.
type Digests struct {
	// Digest of the index, or of the manifest where there is one platform only.
	Digest string
	// Platforms has the manifests of an index, by "linux/amd64"; nil for no index.
	Platforms map[string]string
}

// ErrNotInRegistry means that the registry answered that it has no such image, or none
// that this user may pull.
var ErrNotInRegistry = errors.New("the registry has no such image, or none for this user")

// LookUp asks the registry of a reference for its digests, and pulls nothing. lookup
// returns variables of the environment, for DOCKER_CONFIG; nil: none.
func LookUp(ctx context.Context, ref reference.Ref, lookup func(string) (string, bool)) (Digests, error) {
	parsed, err := name.ParseReference(ref.String())
	if err != nil {
		return Digests{}, err
	}
	puller, err := newPuller(ref, lookup)
	if err != nil {
		return Digests{}, err
	}
	desc, err := getManifest(ctx, puller, parsed)
	var status *transport.Error
	if errors.As(err, &status) && (status.StatusCode == http.StatusUnauthorized || status.StatusCode == http.StatusForbidden || status.StatusCode == http.StatusNotFound) {
		return Digests{}, errors.Join(ErrNotInRegistry, explainRegistry(ref, err))
	}
	if err != nil {
		return Digests{}, explainRegistry(ref, err)
	}
	want := descriptor{Digest: desc.Digest.String(), Size: int64(len(desc.Manifest))}
	data, err := readVerified(bytes.NewReader(desc.Manifest), "its manifest", want, maxManifest)
	if err != nil {
		return Digests{}, err
	}
	doc, err := parseDocument(data)
	if err != nil {
		return Digests{}, err
	}
	out := Digests{Digest: want.Digest}
	for _, m := range doc.Manifests {
		// Of attestations the platform is unknown/unknown.
		if m.Platform == nil || m.Platform.OS != "linux" {
			continue
		}
		if out.Platforms == nil {
			out.Platforms = map[string]string{}
		}
		if p := m.Platform.String(); out.Platforms[p] == "" {
			out.Platforms[p] = m.Digest
		}
	}
	return out, nil
}

package image

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxPush bounds the time for sending an artifact.
const maxPush = 5 * time.Minute

// Pusher is a repository that this user may write to.
type Pusher struct {
	*Repository
	pusher *remote.Pusher
}

// Pusher asks the registry whether the user may push. By that permission it is also read:
// of a repository that isn't there yet some registries say so only to who may make it.
func (r *Repository) Pusher(ctx context.Context) (*Pusher, error) {
	ctx, cancel := within(ctx, manifestTimeout)
	defer cancel()
	auth, err := authn.Resolve(ctx, keychain{r.lookup}, r.repo)
	if err != nil {
		return nil, err
	}
	client := transport.NewRetry(secure{smallAnswers{dialer()}, r.ref.RegistryHost()})
	t, err := transport.NewWithContext(ctx, r.repo.Registry, auth, transport.NewUserAgent(client, "workshop"), []string{r.repo.Scope(transport.PushScope)})
	if err != nil {
		return nil, r.explained(ctx, err)
	}
	p := &Pusher{Repository: &Repository{ref: r.ref, repo: r.repo, lookup: r.lookup}}
	if p.puller, err = remote.NewPuller(remote.WithTransport(t)); err == nil {
		p.pusher, err = remote.NewPusher(remote.WithTransport(t))
	}
	return p, err
}

// Push sends an artifact, and gives it a tag; "" for none.
func (p *Pusher) Push(ctx context.Context, a Artifact, tag string) error {
	if tag != "" && !IsTag(tag) {
		return fmt.Errorf("%.80q is not a tag", tag)
	}
	ctx, cancel := within(ctx, maxPush)
	defer cancel()
	return p.explained(ctx, p.push(ctx, a, tag))
}

func (p *Pusher) push(ctx context.Context, a Artifact, tag string) error {
	for _, blob := range []struct {
		kind string
		data []byte
	}{{emptyType, []byte(emptyConfig)}, {a.LayerType, a.Layer}} {
		if err := p.pusher.Upload(ctx, p.repo, static.NewLayer(blob.data, types.MediaType(blob.kind))); err != nil {
			return err
		}
	}
	var ref name.Reference = p.repo.Digest(a.Digest())
	if tag != "" {
		ref = p.repo.Tag(tag)
	}
	return p.pusher.Put(ctx, ref, taggable(a.Manifest()))
}

// taggable is a manifest that is put into a registry.
type taggable []byte

// RawManifest is what [remote.Taggable] asks for.
func (m taggable) RawManifest() ([]byte, error) { return bytes.Clone(m), nil }

// MediaType says what it is.
func (m taggable) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

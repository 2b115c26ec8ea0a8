package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/llmdo/workshop/internal/image/reference"
)

// registry pulls images by the OCI distribution specification with the user's
// credentials.
type registry struct {
	host   string
	ref    name.Reference
	puller *remote.Puller
}

func openRegistry(ref reference.Ref, lookup func(string) (string, bool)) (*registry, error) {
	parsed, err := name.ParseReference(ref.String())
	if err != nil {
		return nil, err
	}
	puller, err := newPuller(ref, lookup)
	if err != nil {
		return nil, err
	}
	return &registry{host: ref.RegistryHost(), ref: parsed, puller: puller}, nil
}

func (*registry) Close() error { return nil }

func (r *registry) manifest(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	desc, err := getManifest(ctx, r.puller, r.ref.Context().Digest(d.Digest))
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(desc.Manifest)), nil
}

func (r *registry) blob(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	l, err := r.puller.Layer(ctx, r.ref.Context().Digest(d.Digest))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	rc, err := l.Compressed()
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return newStalls(ctx, rc, cancel), nil
}

func (r *registry) resolve(ctx context.Context, ref reference.Ref, arch string, limits Limits) (*found, error) {
	desc, err := getManifest(ctx, r.puller, r.ref)
	if err != nil {
		return nil, err
	}
	want := ref.Digest
	if want == "" {
		want = desc.Digest.String()
	}
	data, err := readVerified(bytes.NewReader(desc.Manifest), "its manifest", descriptor{Digest: want, Size: int64(len(desc.Manifest))}, maxManifest)
	if err != nil {
		return nil, err
	}
	f, err := resolve(ctx, r, data, arch, limits)
	if err != nil {
		return nil, err
	}
	for i := range f.layers {
		f.layers[i].remote = true
	}
	return f, nil
}

// maxStall is how long a registry may send nothing.
const maxStall = time.Minute

// stalls ends the read of a body that has stalled.
type stalls struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newStalls(ctx context.Context, r io.ReadCloser, cancel context.CancelCauseFunc) *stalls {
	return &stalls{r, ctx, cancel, time.AfterFunc(maxStall, func() { cancel(fmt.Errorf("no data for %s", maxStall)) })}
}

func (s *stalls) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF && s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	s.timer.Reset(maxStall)
	return n, err
}

func (s *stalls) Close() error {
	s.timer.Stop()
	s.cancel(nil)
	return s.ReadCloser.Close()
}

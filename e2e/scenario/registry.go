//go:build linux

package scenario

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// hasImage: what a test wants is always put into the registry anew.
func (m *namespaceMachine) hasImage(string) bool { return false }

// importImage puts the image into a registry of the test internet, which has
// the name of the real one.
func (m *namespaceMachine) importImage(s *Scenario, ref string, tar []byte) error {
	to, err := name.ParseReference(ref)
	if err != nil {
		return err
	}
	image, err := imageOf(tar)
	if err != nil {
		return err
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	push := httptest.NewServer(handler)
	defer push.Close()
	at, err := name.ParseReference(strings.TrimPrefix(push.URL, "http://")+"/"+to.Context().RepositoryStr()+":"+to.Identifier(), name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(at, image); err != nil {
		return err
	}
	s.Cleanup(s.Internet.Site(to.Context().RegistryStr(), handler))
	return nil
}

// imageOf is an image of one layer for this machine.
func imageOf(tar []byte) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tar)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, configured(image))
}

// Registry is a registry of this machine's loopback, which needs no TLS, and a function
// that puts an image of one layer there and returns its digest.
func (s *Scenario) Registry() (host string, push func(ref string, tar []byte) (digest string)) {
	s.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func(ref string, tar []byte) string {
		s.Helper()
		to, err := name.ParseReference(ref)
		s.must(err)
		image, err := imageOf(tar)
		s.must(err)
		s.must(remote.Write(to, image))
		digest, err := image.Digest()
		s.must(err)
		return digest.String()
	}
}

func configured(image v1.Image) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		c = &v1.ConfigFile{}
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	return c
}

// SavedImage is what `docker save` writes of an image of one layer.
func (s *Scenario) SavedImage(ref string, tar []byte) []byte {
	s.Helper()
	tag, err := name.NewTag(ref)
	s.must(err)
	image, err := imageOf(tar)
	s.must(err)
	var b bytes.Buffer
	s.must(tarball.Write(tag, image, &b))
	return b.Bytes()
}

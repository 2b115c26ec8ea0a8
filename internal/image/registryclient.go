package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/llmdo/workshop/internal/image/reference"
)

func newPuller(ref reference.Ref, lookup func(string) (string, bool)) (*remote.Puller, error) {
	return remote.NewPuller(clientOptions(ref, lookup, dialer())...)
}

// clientOptions are those of every client of the registry of a reference.
func clientOptions(ref reference.Ref, lookup func(string) (string, bool), next http.RoundTripper) []remote.Option {
	return []remote.Option{remote.WithTransport(secure{next, ref.RegistryHost()}), remote.WithAuthFromKeychain(keychain{lookup}), remote.WithUserAgent("workshop")}
}

// manifestTimeout bounds a request for a manifest, which is small.
var manifestTimeout = time.Minute

// getManifest gets the manifest or index of a reference, whole.
func getManifest(ctx context.Context, p *remote.Puller, ref name.Reference) (*remote.Descriptor, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, manifestTimeout, fmt.Errorf("the registry took longer than %s", manifestTimeout))
	defer cancel()
	desc, err := p.Get(ctx, ref)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return desc, err
}

// dialer returns a transport with a timeout for every wait except for a body, for which
// [stalls] has one.
func dialer() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 15 * time.Second
	t.ResponseHeaderTimeout = time.Minute
	t.MaxResponseHeaderBytes = 1 << 20
	return t
}

// keychain reads Docker's configuration: auths, credsStore and credHelpers.
type keychain struct{ lookup func(string) (string, bool) }

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	dir := ""
	if k.lookup != nil {
		dir, _ = k.lookup("DOCKER_CONFIG")
	}
	file, err := config.Load(dir)
	if err != nil {
		return nil, err
	}
	host := r.RegistryStr()
	if host == name.DefaultRegistry {
		host = authn.DefaultAuthKey // the key used by docker login
	}
	a, err := file.GetAuthConfig(host)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", host, err)
	}
	if a.Username == "" && a.Password == "" && a.Auth == "" && a.IdentityToken == "" && a.RegistryToken == "" {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(authn.AuthConfig{
		Username: a.Username, Password: a.Password, Auth: a.Auth, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}), nil
}

// explainRegistry adds a hint to an error of a registry.
func explainRegistry(ref reference.Ref, err error) error {
	host := ref.RegistryHost()
	var dns *net.DNSError
	var op *net.OpError
	var status *transport.Error
	offline := "check the network, or read the image from a file: image: oci:DIR or docker-archive:FILE"
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns):
		return fmt.Errorf("pull %s: the name %s can't be resolved (%w): %s", ref, dns.Name, err, offline)
	case errors.As(err, &status):
		return fmt.Errorf("pull %s: %w: %s", ref, err, statusHint(status, ref))
	case errors.As(err, &op), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("pull %s: the registry %s can't be reached (%w): %s", ref, host, err, offline)
	}
	return fmt.Errorf("pull %s: %w", ref, err)
}

func statusHint(e *transport.Error, ref reference.Ref) string {
	login := "docker login " + ref.RegistryHost()
	if ref.RegistryHost() == "docker.io" {
		login = "docker login"
	}
	switch {
	case e.StatusCode == http.StatusTooManyRequests:
		return "rate-limited by the registry: wait, or run `" + login + "`"
	case e.StatusCode == http.StatusUnauthorized, e.StatusCode == http.StatusForbidden, strings.Contains(e.Error(), "denied"):
		return "check the name, or run `" + login + "`"
	case e.StatusCode == http.StatusNotFound:
		return "check name and tag"
	}
	return "try again later"
}

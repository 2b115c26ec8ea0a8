package docker

import (
	stdcontext "context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/docker/cli/cli/connhelper"
	"github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"
)

// contextEndpoint is the name of the engine's endpoint in a docker context.
const contextEndpoint = "docker"

// reach is an engine's address and credentials. The Docker CLI's own package for
// this (cli/context/docker) would link a second client.
type reach struct {
	context.EndpointMetaBase
	tls *context.TLSData // nil: none in the context
}

// fromContext loads a docker context below dir.
func fromContext(dir, name string) (reach, error) {
	s := store.New(dir, store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter(contextEndpoint, func() any { return &context.EndpointMetaBase{} })))
	meta, err := s.GetMetadata(name)
	if err != nil {
		return reach{}, fmt.Errorf("docker context %q: %w (see `docker context ls`)", name, err)
	}
	base, ok := meta.Endpoints[contextEndpoint].(context.EndpointMetaBase)
	if !ok {
		return reach{}, fmt.Errorf("docker context %q names no engine: see `docker context inspect %s`", name, name)
	}
	secrets, err := context.LoadTLSData(s, name, contextEndpoint)
	if err != nil {
		return reach{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	return reach{EndpointMetaBase: base, tls: secrets}, nil
}

// dialTime bounds a connection to a unix socket, whose queue may be full.
const dialTime = 5 * time.Second

// dialSocket connects to a unix socket, and judges who listens there.
func dialSocket(ctx stdcontext.Context, path string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// options returns the client options, and completes the transport: ssh for an ssh address,
// TLS if the context has keys or turns verification off.
func (r reach) options(t *http.Transport) ([]client.Opt, error) {
	opts := []client.Opt{client.WithVersionFromEnv(), client.WithAPIVersionNegotiation()}
	helper, err := connhelper.GetConnectionHelper(r.Host)
	switch {
	case err != nil:
		return nil, err
	case helper != nil:
		return append(opts, client.WithHost(helper.Host), client.WithDialContext(helper.Dialer)), nil
	}
	opts = append(opts, client.WithHost(r.Host))
	scheme, path, _ := strings.Cut(r.Host, "://")
	if scheme == "unix" {
		opts = append(opts, client.WithDialContext(func(ctx stdcontext.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, path) }))
	}
	if local := scheme == "unix" || scheme == "npipe" || scheme == "fd"; !local && (r.tls != nil || r.SkipTLSVerify) {
		t.TLSClientConfig, err = r.tlsConfig()
	}
	return opts, err
}

func (r reach) tlsConfig() (*tls.Config, error) {
	config := tlsconfig.ClientDefault()
	config.InsecureSkipVerify = r.SkipTLSVerify
	if r.tls == nil {
		return config, nil
	}
	if r.tls.CA != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(r.tls.CA) {
			return nil, errors.New("the docker context's ca.pem has no certificate")
		}
	}
	if r.tls.Key != nil && r.tls.Cert != nil {
		pair, err := tls.X509KeyPair(r.tls.Cert, r.tls.Key)
		if err != nil {
			return nil, fmt.Errorf("the docker context's cert.pem and key.pem: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

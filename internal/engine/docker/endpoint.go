package docker

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"

	"github.com/llmdo/workshop/internal/engine"
)

// endpoint is the address of an engine.
type endpoint struct {
	host    string // "unix:///var/run/docker.sock"
	context string // the docker context that named it, or ""
	opts    []client.Opt
	http    *http.Client // of the opts
}

// socket returns the path of a unix socket, or "".
func (ep endpoint) socket() string {
	path, ok := strings.CutPrefix(ep.host, "unix://")
	if !ok {
		return ""
	}
	return path
}

// Endpoint returns the address that [New] would use, and the docker context that names it;
// "" for none.
func Endpoint(o Options) (host, context string, err error) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	ep, err := findEndpoint(o)
	return ep.host, ep.context, err
}

// findEndpoint selects the endpoint like the docker command, in this order: an
// explicit host, an explicit context, DOCKER_HOST, DOCKER_CONTEXT, the current
// context, the default socket. podman's is found by [podmanHost].
func findEndpoint(o Options) (endpoint, error) {
	env := func(name string) string { v, _ := o.Lookup(name); return v }
	host, name := o.Host, o.Context
	if host == "" && o.Flavour == engine.FlavourPodman {
		var err error
		if host, err = podmanHost(env); err != nil {
			return endpoint{}, err
		}
	}
	if host == "" && name == "" {
		host = env(client.EnvOverrideHost)
	}
	if host == "" && name == "" {
		name = env("DOCKER_CONTEXT")
	}
	dir := env("DOCKER_CONFIG")
	if dir == "" {
		dir = config.Dir()
	}
	if host == "" && name == "" {
		// A damaged file is reported when credentials are needed.
		if file, err := config.Load(dir); err == nil {
			name = file.CurrentContext
		}
	}
	var ep reach
	ep.Host = host
	if host == "" && name != "" && name != "default" {
		found, err := fromContext(filepath.Join(dir, "contexts"), name)
		if err != nil {
			return endpoint{}, err
		}
		ep = found
	} else {
		name = ""
	}
	ep.Host = cmp.Or(ep.Host, client.DefaultDockerHost)
	transport := &http.Transport{MaxResponseHeaderBytes: maxHead}
	opts, err := ep.options(transport)
	if err == nil && name == "" && strings.HasPrefix(ep.Host, "tcp://") {
		transport.TLSClientConfig, err = tlsFromEnvironment(env, dir)
	}
	if err != nil {
		return endpoint{}, &UnreachableError{Endpoint: ep.Host, Err: err}
	}
	own := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	// First, because WithHost completes its transport.
	return endpoint{host: ep.Host, context: name, opts: append([]client.Opt{client.WithHTTPClient(own)}, opts...), http: own}, nil
}

// tlsFromEnvironment honours DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH; nil: none.
func tlsFromEnvironment(env func(string) string, dir string) (*tls.Config, error) {
	path := env(client.EnvOverrideCertPath)
	verify := env(client.EnvTLSVerify) != ""
	if path == "" && !verify {
		return nil, nil
	}
	if path == "" {
		path = dir
	}
	return tlsconfig.Client(tlsconfig.Options{
		CAFile: filepath.Join(path, "ca.pem"), CertFile: filepath.Join(path, "cert.pem"), KeyFile: filepath.Join(path, "key.pem"),
		InsecureSkipVerify: !verify,
	})
}

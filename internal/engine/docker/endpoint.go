package docker

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	contextdocker "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"
	"net/http"
)

// endpoint is how an engine is reached.
type endpoint struct {
	host    string // "unix:///var/run/docker.sock"
	context string // the docker context that named it, or ""
	opts    []client.Opt
}

// socket returns the path of a unix socket, or "".
func (ep endpoint) socket() string {
	path, ok := strings.CutPrefix(ep.host, "unix://")
	if !ok {
		return ""
	}
	return path
}

// findEndpoint chooses as the docker command does: an explicit host, an
// explicit context, DOCKER_HOST, DOCKER_CONTEXT, the current context, the
// default socket.
func findEndpoint(o Options) (endpoint, error) {
	env := func(name string) string { v, _ := o.Lookup(name); return v }
	host, name := o.Host, o.Context
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
	meta := contextdocker.EndpointMeta{Host: host}
	ep := contextdocker.Endpoint{EndpointMeta: meta}
	if host == "" && name != "" && name != "default" {
		found, err := fromContext(filepath.Join(dir, "contexts"), name)
		if err != nil {
			return endpoint{}, err
		}
		ep = found
	} else {
		name = ""
		if ep.Host == "" {
			ep.Host = client.DefaultDockerHost
		}
	}
	opts, err := ep.ClientOpts()
	if err != nil {
		return endpoint{}, &UnreachableError{Endpoint: ep.Host, Err: err}
	}
	if name == "" && strings.HasPrefix(ep.Host, "tcp://") {
		tls, err := tlsFromEnvironment(env, dir)
		if err != nil {
			return endpoint{}, &UnreachableError{Endpoint: ep.Host, Err: err}
		}
		opts = append(tls, opts...)
	}
	return endpoint{host: ep.Host, context: name, opts: opts}, nil
}

func fromContext(dir, name string) (contextdocker.Endpoint, error) {
	s := store.New(dir, store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter(contextdocker.DockerEndpoint, func() any { return &contextdocker.EndpointMeta{} })))
	meta, err := s.GetMetadata(name)
	if err != nil {
		return contextdocker.Endpoint{}, fmt.Errorf("docker context %q: %w (see `docker context ls`)", name, err)
	}
	em, err := contextdocker.EndpointFromContext(meta)
	if err != nil {
		return contextdocker.Endpoint{}, fmt.Errorf("docker context %q: %w", name, err)
	}
	return contextdocker.WithTLSData(s, name, em)
}

// tlsFromEnvironment honours DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH.
func tlsFromEnvironment(env func(string) string, dir string) ([]client.Opt, error) {
	path := env(client.EnvOverrideCertPath)
	verify := env(client.EnvTLSVerify) != ""
	if path == "" && !verify {
		return nil, nil
	}
	if path == "" {
		path = dir
	}
	tls, err := tlsconfig.Client(tlsconfig.Options{
		CAFile: filepath.Join(path, "ca.pem"), CertFile: filepath.Join(path, "cert.pem"), KeyFile: filepath.Join(path, "key.pem"),
		InsecureSkipVerify: !verify,
	})
	if err != nil {
		return nil, err
	}
	return []client.Opt{client.WithHTTPClient(&http.Client{
		Transport:     &http.Transport{TLSClientConfig: tls},
		CheckRedirect: client.CheckRedirect,
	})}, nil
}

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
)

// pull pulls the image of a step with the user's credentials for its
// registry.
func (e *Engine) pull(ctx context.Context, p *engine.Plan, s engine.Step, emit func(engine.Event)) error {
	if err := engine.RefuseImageFiles(promise.Docker, s.Key); err != nil {
		return err
	}
	service := p.Compiled.Project.Services[s.Service]
	if service.PullPolicy == types.PullPolicyNever {
		return fmt.Errorf("image %s is not on this engine, and pull is never: build or load it, or set pull: missing", s.Key)
	}
	auth, err := e.credentials(s.Key)
	if err != nil {
		return fmt.Errorf("image %s: %w", s.Key, err)
	}
	stream, err := e.cli.ImagePull(ctx, s.Key, image.PullOptions{RegistryAuth: auth, Platform: service.Platform})
	if err != nil {
		return pullError(s.Key, err)
	}
	defer stream.Close()
	layers := map[string]*jsonmessage.JSONProgress{}
	err = messages(stream, func(m *jsonmessage.JSONMessage) {
		ev := engine.Event{Step: s, Status: engine.StepProgress, Detail: m.Status}
		if m.Progress != nil && m.Progress.Total > 0 && m.Status == "Downloading" {
			layers[m.ID] = m.Progress
		}
		for _, l := range layers {
			ev.Current += l.Current
			ev.Total += l.Total
		}
		emit(ev)
	})
	if err != nil {
		return pullError(s.Key, err)
	}
	return nil
}

func pullError(ref string, err error) error {
	msg := strings.ToLower(err.Error())
	switch {
	case cerrdefs.IsUnauthorized(err), strings.Contains(msg, "denied"), strings.Contains(msg, "unauthorized"):
		return fmt.Errorf("pull %s: %w: check the name, or run `docker login %s`", ref, err, registryOf(ref))
	case cerrdefs.IsNotFound(err), strings.Contains(msg, "manifest unknown"), strings.Contains(msg, "not found"):
		return fmt.Errorf("pull %s: %w: check name and tag, or build the image on this engine", ref, err)
	}
	return fmt.Errorf("pull %s: %w", ref, err)
}

// maxStreamed bounds one message of a stream, in bytes.
const maxStreamed = 1 << 20

// messages reads the engine's stream of JSON messages until an error or EOF.
func messages(r io.Reader, each func(*jsonmessage.JSONMessage)) error {
	limited := &io.LimitedReader{R: r}
	dec := json.NewDecoder(limited)
	for {
		var m jsonmessage.JSONMessage
		limited.N = maxStreamed
		err := dec.Decode(&m)
		switch {
		case limited.N == 0:
			return &answerError{fmt.Sprintf("a message has more than %d MiB", maxStreamed>>20)}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != nil:
			return m.Error
		}
		each(&m)
	}
}

// registryOf returns the host name of a reference's registry.
func registryOf(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	return reference.Domain(named)
}

// credentials returns the credentials from the user's configuration and credential
// helpers, like docker; "" if there are none.
func (e *Engine) credentials(ref string) (string, error) {
	host := registryOf(ref)
	if host == "" {
		return "", fmt.Errorf("%q is not an image reference", ref)
	}
	if host == "docker.io" {
		host = dockerHub
	}
	dir, _ := e.opts.Lookup("DOCKER_CONFIG")
	file, err := config.Load(dir)
	if err != nil {
		return "", err
	}
	auth, err := file.GetAuthConfig(host)
	if err != nil {
		return "", fmt.Errorf("credentials for %s: %w", host, err)
	}
	if auth.Username == "" && auth.IdentityToken == "" && auth.RegistryToken == "" && auth.Auth == "" {
		return "", nil
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: auth.Username, Password: auth.Password, Auth: auth.Auth, ServerAddress: auth.ServerAddress,
		IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
	})
}

// dockerHub is the name under which `docker login` stores the credentials of docker.io.
const dockerHub = "https://index.docker.io/v1/"

// buildCredentials returns credentials for the base images of a build: of Docker Hub, where
// an image without a registry is, and of the registries that the Dockerfile or an argument
// names; the docker command sends all. Unreadable ones are left out; the pull then reports
// what is missing.
func (e *Engine) buildCredentials(dockerfile []byte, args map[string]string) map[string]registry.AuthConfig {
	named := string(dockerfile)
	for _, value := range args {
		named += "\n" + value
	}
	dir, _ := e.opts.Lookup("DOCKER_CONFIG")
	file, err := config.Load(dir)
	if err != nil {
		return nil
	}
	all, err := file.GetAllCredentials()
	if err != nil {
		return nil
	}
	out := map[string]registry.AuthConfig{}
	for host, a := range all {
		_, rest, ok := strings.Cut(host, "://")
		if !ok {
			rest = host
		}
		if name, _, _ := strings.Cut(rest, "/"); host != dockerHub && (name == "" || !strings.Contains(named, name)) {
			continue
		}
		out[host] = registry.AuthConfig{
			Username: a.Username, Password: a.Password, Auth: a.Auth, ServerAddress: a.ServerAddress,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
		}
	}
	return out
}

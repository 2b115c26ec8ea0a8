package docker

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/strslice"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// creation is the arguments of one container create call.
type creation struct {
	name     string
	config   *container.Config
	host     *container.HostConfig
	network  *network.NetworkingConfig
	platform *ocispec.Platform
	imageEnv []string // of the image, for what it adds

	found *container.InspectResponse // as the engine has it, once that was compared
}

// translate translates a service to a container create call. joins is the ID of the
// container of a "service:" network mode; image is the engine's name of the image,
// if it differs from the reference.
func translate(d engine.Desired, service, joins, image string) (*creation, error) {
	s, ok := d.Compiled.Project.Services[service]
	if !ok {
		return nil, fmt.Errorf("no service %q in the project", service)
	}
	if err := checkKnown("service "+service, s); err != nil {
		return nil, err
	}
	t := translation{d: d, c: d.Compiled, name: service, s: s}
	config, err := t.config()
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", service, err)
	}
	if image != "" {
		config.Image = image
	}
	host, err := t.host(joins)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", service, err)
	}
	if err := t.ports(config, host); err != nil {
		return nil, fmt.Errorf("service %s: %w", service, err)
	}
	net, err := t.network(host)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", service, err)
	}
	out := &creation{name: engine.ContainerName(t.c.Project, service), config: config, host: host, network: net}
	if s.Platform != "" {
		os, arch, _ := strings.Cut(s.Platform, "/")
		arch, variant, _ := strings.Cut(arch, "/")
		out.platform = &ocispec.Platform{OS: os, Architecture: arch, Variant: variant}
	}
	return out, nil
}

type translation struct {
	d    engine.Desired
	c    *compose.Compiled
	name string
	s    types.ServiceConfig
}

func (t translation) config() (*container.Config, error) {
	s := t.s
	env, err := engine.Environment(s.Environment)
	if err != nil {
		return nil, err
	}
	c := &container.Config{
		Hostname: s.Hostname, User: s.User, WorkingDir: s.WorkingDir, Env: env, Image: engine.ImageRef(t.d, t.name),
		Tty: s.Tty, OpenStdin: s.StdinOpen, StopSignal: s.StopSignal,
		Labels:      engine.ContainerLabels(t.d, t.name),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	// Compose's rule: absent keeps the image's, an empty list clears it.
	if s.Command != nil {
		c.Cmd = strslice.StrSlice(s.Command)
	}
	if s.Entrypoint != nil {
		c.Entrypoint = strslice.StrSlice(s.Entrypoint)
		if len(s.Entrypoint) == 0 {
			c.Entrypoint = strslice.StrSlice{""}
		}
	}
	if s.StopGracePeriod != nil {
		seconds := int(math.Ceil(time.Duration(*s.StopGracePeriod).Seconds()))
		c.StopTimeout = &seconds
	}
	return c, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

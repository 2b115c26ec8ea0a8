package docker

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
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

// creation is one call of the engine's container create.
type creation struct {
	name     string
	config   *container.Config
	host     *container.HostConfig
	network  *network.NetworkingConfig
	platform *ocispec.Platform
}

// translate says a service in the engine's words. joins is the ID of the
// container whose network namespace a "service:" network mode means; image is
// the engine's name of the image, if it differs from the reference.
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
	env, err := environment(s.Environment)
	if err != nil {
		return nil, err
	}
	c := &container.Config{
		Hostname: s.Hostname, User: s.User, WorkingDir: s.WorkingDir, Env: env, Image: engine.ImageRef(t.d, t.name),
		Tty: s.Tty, OpenStdin: s.StdinOpen, StopSignal: s.StopSignal,
		Labels:      t.labels(),
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

func environment(vars types.MappingWithEquals) ([]string, error) {
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if vars[name] == nil {
			return nil, fmt.Errorf("environment variable %s has no value", name)
		}
		env = append(env, name+"="+*vars[name])
	}
	return env, nil
}

func (t translation) labels() map[string]string {
	p := t.c.Project
	out := map[string]string{}
	maps.Copy(out, t.s.Labels)
	maps.Copy(out, t.s.CustomLabels)
	delete(out, compose.LabelPolicy) // a reload would leave it wrong
	hash := engine.ConfigHash(t.d, t.name)
	dependsOn := make([]string, 0, len(t.s.DependsOn))
	for _, dep := range slices.Sorted(maps.Keys(t.s.DependsOn)) {
		dependsOn = append(dependsOn, dep+":"+t.s.DependsOn[dep].Condition+":"+strconv.FormatBool(t.s.DependsOn[dep].Restart))
	}
	maps.Copy(out, t.objectLabels())
	maps.Copy(out, map[string]string{
		engine.LabelService:     t.name,
		engine.LabelComposeHash: hash,
		compose.LabelConfigHash: hash,
		engine.LabelNumber:      "1",
		engine.LabelOneOff:      "False",
		engine.LabelDependsOn:   strings.Join(dependsOn, ","),
		engine.LabelImage:       engine.ImageRef(t.d, t.name),
	})
	if f := t.c.Facts; f != nil && f.ProjectDir != "" {
		dir := f.ProjectDir + "/.workshop/" + p.Name
		out[engine.LabelWorkingDir] = dir
		out[engine.LabelConfigFiles] = dir + "/compose.yaml," + dir + "/run/compose.facts.yaml"
	}
	return out
}

func (t translation) objectLabels() map[string]string { return objectLabels(t.c) }

// objectLabels are on everything that belongs to the project.
func objectLabels(c *compose.Compiled) map[string]string {
	out := map[string]string{
		engine.LabelProject: c.Project.Name,
		// A version of Compose whose labels these are.
		engine.LabelVersion: "2.40.3",
	}
	if c.Facts != nil && c.Facts.ProjectDir != "" {
		out[compose.LabelDirectory] = c.Facts.ProjectDir
	}
	return out
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

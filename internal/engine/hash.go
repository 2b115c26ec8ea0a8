package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// CgroupNamespace is the cgroup namespace mode of every container: its own (B6).
// Docker's default on cgroup v1 is the host's, which shows the paths of the host's
// cgroups in /proc/self/cgroup. The generated project doesn't set it, because
// docker-compose 1.29 refuses the key `cgroup` in its format.
const CgroupNamespace = "private"

// ConfigHash identifies the configuration of a service's container: everything of
// the project that reaches the container, and nothing that doesn't, such as the
// order of starts or the source of the image. Of the policy it includes what a
// running guard can't change; the lines of the rooms are sent by [OpReloadPolicy].
// (Variables in those lines are in the guard's environment, which is included.)
func ConfigHash(d Desired, service string) string {
	c := d.Compiled
	s := c.Project.Services[service]
	s.Name = ""
	s.Build, s.DependsOn, s.Profiles, s.Scale, s.Deploy = nil, nil, nil, nil, nil
	s.PullPolicy, s.HealthCheck = "", nil
	s.Image = ImageRef(d, service)
	in := struct {
		Service  types.ServiceConfig
		Volumes  map[string]string       // the engine's names: the tool volume's is its content
		Networks map[string]string       // hashes
		Copies   map[string]compose.Copy `json:",omitempty"`
		Secrets  map[string]string       `json:",omitempty"`
		Seccomp  []byte                  `json:",omitempty"`
		Policy   any                     `json:",omitempty"`
		CgroupNS string
	}{CgroupNS: CgroupNamespace, Service: s, Volumes: map[string]string{}, Networks: map[string]string{}, Copies: map[string]compose.Copy{}, Secrets: map[string]string{}}
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeVolume {
			continue
		}
		in.Volumes[v.Source] = VolumeName(c.Project, v.Source)
		if copied, ok := c.Copies[v.Source]; ok {
			in.Copies[v.Source] = copied
		}
	}
	for key := range s.Networks {
		in.Networks[key] = NetworkHash(c.Project, key)
	}
	for _, secret := range s.Secrets {
		in.Secrets[secret.Source] = c.Project.Secrets[secret.Source].File
	}
	if len(s.SecurityOpt) > 0 {
		in.Seccomp = c.Seccomp
	}
	if c.Roles[service] == compose.RoleGuard {
		in.Policy = c.Policy.Fixed()
		// For plain Compose, which recreates the guard when a label changes.
		in.Service.Labels = maps.Clone(s.Labels)
		delete(in.Service.Labels, compose.LabelPolicy)
	}
	return hashOf(in)
}

// NetworkHash identifies the configuration of a network of the project.
func NetworkHash(p *types.Project, key string) string {
	n := p.Networks[key]
	n.Labels = nil
	return hashOf(n)
}

// CopyHash identifies the source of a read-only copy, not its content.
func CopyHash(c compose.Copy) string {
	c.Digest = ""
	return hashOf(c)
}

func hashOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Types of this module and compose-go, all of which marshal.
		panic("engine: hash: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

package engine

import (
	"maps"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

// workersOnly removes rooms and guard, with their objects, from a project. The
// policy stays, with the values of its variables. Its digest is put into the labels
// of the workers concerned, which are recreated when it changes, as there is no
// guard to update.
func workersOnly(c *compose.Compiled) *compose.Compiled {
	out := *c
	project := *c.Project
	out.Project, out.RoomOf, out.Rulesets, out.Roles = &project, nil, nil, map[string]compose.Role{}
	project.Services, project.Networks = types.Services{}, nil
	project.Volumes = maps.Clone(c.Project.Volumes)
	for _, key := range []string{compose.PolicyVolume, compose.SocketsVolume} {
		delete(project.Volumes, key)
	}
	out.Caches = nil
	for key := range c.Caches {
		delete(project.Volumes, key)
	}
	if c.Policy != nil { // the values are in the guard's service, which is removed
		env := c.Project.Services[compose.GuardService].Environment
		if p, err := firewall.Expand(c.Policy, func(name string) (string, bool) {
			if v := env[name]; v != nil {
				return *v, true
			}
			return "", false
		}); err == nil { // an engine refuses a policy that isn't expanded
			out.Policy = p
		}
	}
	for name, s := range c.Project.Services {
		if c.Roles[name] != compose.RoleWorker {
			continue
		}
		if c.RoomOf[name] != "" && c.Policy != nil {
			s.Labels = maps.Clone(s.Labels)
			if s.Labels == nil {
				s.Labels = types.Labels{}
			}
			s.Labels[compose.LabelPolicy] = firewall.Digest(out.Policy)
		}
		s.DependsOn, s.Networks, s.NetworkMode = nil, nil, ""
		withoutCaches(&s, c.Caches)
		project.Services[name], out.Roles[name] = s, compose.RoleWorker
	}
	return &out
}

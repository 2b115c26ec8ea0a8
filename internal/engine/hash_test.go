package engine

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

// A policy that the running guard can take makes no new guard.
func TestConfigHashOfTheGuard(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*compose.Compiled)
		same   bool
	}{
		"lines":     {func(c *compose.Compiled) { allow(&Desired{Compiled: c}) }, true},
		"workers":   {func(c *compose.Compiled) { c.Policy.Rooms[0].Workers = nil }, true},
		"mode":      {func(c *compose.Compiled) { c.Policy.Rooms[0].Mode = firewall.Open }, false},
		"room":      {func(c *compose.Compiled) { c.Policy.Rooms[0].Room = "room-a" }, false},
		"resolvers": {func(c *compose.Compiled) { c.Policy.Resolvers = []string{"198.51.100.53"} }, false},
		"proxy":     {func(c *compose.Compiled) { c.Policy.Proxy = "http://proxy.example.org:3128" }, false},
		"published": {func(c *compose.Compiled) {
			c.Policy.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "a"}}
		}, false},
		"its digest": {func(c *compose.Compiled) { setLabel(c, compose.LabelPolicy, "other") }, true},
		"label":      {func(c *compose.Compiled) { setLabel(c, compose.LabelRole, "other") }, false},
		"a value of a line": {func(c *compose.Compiled) {
			value, s := "db.example.org", c.Project.Services["guard"]
			s.Environment = types.MappingWithEquals{"WORKSHOP_RULE_0": &value}
			c.Project.Services["guard"] = s
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, d := ConfigHash(desired(), "guard"), desired()
			tc.change(d.Compiled)
			if same := ConfigHash(d, "guard") == before; same != tc.same {
				t.Errorf("same = %v, want %v", same, tc.same)
			}
		})
	}
}

func setLabel(c *compose.Compiled, key, value string) {
	s := c.Project.Services["guard"]
	s.Labels = types.Labels{key: value}
	c.Project.Services["guard"] = s
}

func TestConfigHashChangesWithWhatReachesTheContainer(t *testing.T) {
	service := func(change func(*types.ServiceConfig)) func(*Desired) {
		return func(d *Desired) {
			s := d.Compiled.Project.Services["b"]
			change(&s)
			d.Compiled.Project.Services["b"] = s
		}
	}
	for name, tc := range map[string]struct {
		change func(*Desired)
		same   bool
	}{
		"memory":  {change: service(func(s *types.ServiceConfig) { s.MemLimit = 1 })},
		"command": {change: service(func(s *types.ServiceConfig) { s.Command = types.ShellCommand{"x"} })},
		"label":   {change: service(func(s *types.ServiceConfig) { s.Labels = types.Labels{"a": "b"} })},
		"image":   {change: service(func(s *types.ServiceConfig) { s.Image = "other" })},
		"copy":    {change: func(d *Desired) { d.Compiled.Copies["copy-1"] = compose.Copy{Source: "./other"} }},
		"tool volume": {change: func(d *Desired) {
			d.Compiled.Project.Volumes[compose.ToolsVolume] = types.VolumeConfig{Name: "workshop-init-2"}
		}},
		"seccomp unused": {change: func(d *Desired) { d.Compiled.Seccomp = []byte("{}") }, same: true},
		"depends_on":     {change: service(func(s *types.ServiceConfig) { s.DependsOn = types.DependsOnConfig{"room": {}} }), same: true},
		"pull policy":    {change: service(func(s *types.ServiceConfig) { s.PullPolicy = "always" }), same: true},
		"health check":   {change: service(func(s *types.ServiceConfig) { s.HealthCheck = &types.HealthCheckConfig{} }), same: true},
		"policy":         {change: func(d *Desired) { d.Compiled.Policy.Workshop = "x" }, same: true},
		"another worker": {change: func(d *Desired) { delete(d.Compiled.Project.Services, "c") }, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			before, d := ConfigHash(desired(), "b"), desired()
			tc.change(&d)
			if same := ConfigHash(d, "b") == before; same != tc.same {
				t.Errorf("same = %v, want %v", same, tc.same)
			}
		})
	}
}

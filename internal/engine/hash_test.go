package engine

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

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

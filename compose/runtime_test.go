package compose

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// TestRuntimeOfRoomAndGuard: they have the machine's kernel, whatever runtime the engine
// takes for containers that name none (B30).
func TestRuntimeOfRoomAndGuard(t *testing.T) {
	for _, tt := range []struct {
		name, standard string
		registered     []string
		want           string
	}{
		{"an engine that names none", "", nil, ""},
		{"the default", "runc", []string{"runc"}, ""},
		{"another of the machine's kernel", "crun", []string{"crun", "runc"}, ""},
		{"devices", "nvidia", []string{"nvidia", "runc"}, "runc"},
		{"without runc", "kata", []string{"crun", "kata"}, "crun"},
		{"without any", "kata", []string{"kata"}, "runc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, f := sample(t, 1), sampleFacts()
			w.Workers[0].Container.Runtime = val("runc")
			f.Runtimes, f.DefaultRuntime = tt.registered, tt.standard
			c, _ := WithFacts(compiled(t, w), f)
			for name, role := range c.Roles {
				if s := c.Project.Services[name]; role != RoleWorker && s.Runtime != tt.want {
					t.Errorf("%s has the runtime %q, want %q", name, s.Runtime, tt.want)
				}
			}
			files, err := RenderFacts(c)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(files[0].Data), "runtime: "); (n > 0) != (tt.want != "") {
				t.Errorf("the second file names a runtime %d times:\n%s", n, files[0].Data)
			}
		})
	}
}

// TestRuntimes: a runtime that may bring a network stack, a kernel or devices of
// its own runs in no room, and outside of one only by the user's settings (B6,
// B30), also as the engine's default.
func TestRuntimes(t *testing.T) {
	registered := []string{"crun", "kata", "nvidia", "runc", "runsc"}
	tests := []struct {
		name, runtime, standard string
		allowed                 []string
		room                    bool
		want                    string // code; empty: none
	}{
		{"none is named", "", "", nil, false, ""},
		{"runc", "runc", "runc", nil, false, ""},
		{"runc in a room", "runc", "nvidia", nil, true, ""},
		{"devices", "nvidia", "runc", nil, false, "runtime-unknown"},
		{"another kernel", "runsc", "runc", nil, false, "runtime-unknown"},
		{"a shim that is found by its name", "io.containerd.kata.v2", "runc", nil, false, "runtime-unknown"},
		{"by the user's settings", "runsc", "runc", []string{"runsc"}, false, ""},
		{"another one's setting", "nvidia", "runc", []string{"runsc"}, false, "runtime-unknown"},
		{"no setting opens a room", "runsc", "runc", []string{"runsc"}, true, "runtime-network"},
		{"as the default", "", "nvidia", nil, false, "runtime-unknown"},
		{"as the default, by the user's settings", "", "nvidia", []string{"nvidia"}, false, ""},
		{"as the default, in a room", "", "kata", []string{"kata"}, true, "runtime-network"},
		{"the default isn't taken", "runc", "nvidia", nil, false, ""},
		{"allowed and missing", "sysbox", "runc", []string{"sysbox"}, false, "runtime-missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, f := sample(t, 1), sampleFacts()
			w.Workers[0].Container.Runtime = val(tt.runtime)
			if !tt.room {
				w.Workers[0].Container.Network = workshop.Network{Mode: val(firewall.None)}
			}
			f.Runtimes, f.DefaultRuntime, f.UserRuntimes = registered, tt.standard, tt.allowed
			_, list := WithFacts(compiled(t, w), f)
			got := ""
			if len(list) > 0 {
				got = list[0].Code
			}
			if got != tt.want || len(list) > 1 {
				t.Errorf("got %v, want %q", list, tt.want)
			}
		})
	}
}

package seccomp

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

func TestFilter(t *testing.T) {
	for _, tt := range []struct{ name, profile, arch, err string }{
		{"amd64", string(compose.SeccompProfile()), "amd64", ""},
		{"arm64", string(compose.SeccompProfile()), "arm64", ""},
		{"another architecture", string(compose.SeccompProfile()), "riscv64", `architecture "riscv64"`},
		{"another profile", strings.Replace(string(compose.SeccompProfile()), "ERRNO", "ALLOW", 1), "amd64", "not the one"},
		{"no profile", "", "amd64", "not the one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			filter, err := Filter([]byte(tt.profile), tt.arch)
			if tt.err == "" && (err != nil || len(filter) == 0 || len(filter)%8 != 0) {
				t.Errorf("got %d bytes, %v", len(filter), err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || filter != nil) {
				t.Errorf("got %d bytes, %v, want %q", len(filter), err, tt.err)
			}
		})
	}
}

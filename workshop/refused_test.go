package workshop

import (
	"fmt"
	"testing"
)

// B7: whatever names a path of the host, no key opens what is refused.
func TestNoKeyOpensRefusedPaths(t *testing.T) {
	const mounts = "    mounts: [{source: %q, target: /m, outside_project: %v, mode: %s}]\n"
	env := map[string]string{"XDG_CONFIG_HOME": "/settings"}
	refused := []string{"~/.config/workshop", "/home/me/.config/gh/hosts.yml", "/home/you/.npmrc", "/passwd/me/.netrc", "/settings/workshop", "/etc/ssl"}
	tests := map[string]string{}
	for _, source := range refused {
		for _, outside := range []bool{false, true} {
			for _, mode := range []string{"ro", "rw"} {
				tests[fmt.Sprint(source, outside, mode)] = fmt.Sprintf(mounts, source, outside, mode)
			}
		}
		tests["copy "+source] = fmt.Sprintf("    mounts: [{source: %q, target: /m, outside_project: true, exclude: [x]}]\n", source)
		tests["secret "+source] = fmt.Sprintf("    secrets: [{name: s, file: %q}]\n", source)
		if source[0] == '/' {
			tests["layout "+source] = fmt.Sprintf("    image: \"oci:%s\"\n", source)
			tests["archive "+source] = fmt.Sprintf("    image: \"docker-archive:%s\"\n", source)
			tests["build "+source] = fmt.Sprintf("    build: {context: %q}\n", source)
		}
	}
	for name, keys := range tests {
		t.Run(name, func(t *testing.T) {
			image := "    image: i:1\n"
			if keys[4] != 'm' && keys[4] != 's' {
				image = ""
			}
			fsys := singleFile([]byte("workshop:\n  name: test\n  container:\n" + image + keys + "  workers: [worker]\n"))
			w, l := Load(t.Context(), fsys, "workshop.yaml", Options{
				Home: "/home/me", Homes: []string{"/passwd/me"}, Root: "/work/p",
				Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
			})
			if w != nil || l[0].Code != "protected-path" {
				t.Errorf("got %v, want protected-path", l)
			}
		})
	}
}

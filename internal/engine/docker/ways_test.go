//go:build linux

package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/mount"
)

// B7, B12: before each start, links that came since the mounts were looked at are
// seen, in sources and in the ways to mount points inside of other mounts.
func TestWaysAreLookedAtBeforeAStart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"src/x/workshop", "evil"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"src/link": "/opt", "toEvil": "evil"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	bind := func(source, target string) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: filepath.Join(dir, source), Target: target}
	}
	outer := bind("src", "/workspace")
	tests := []struct {
		name, want string
		mounts     []mount.Mount
	}{
		{"directories", "", []mount.Mount{bind("evil", "/workspace/x/workshop"), outer}},
		{"a link in the way", "leads through " + dir + "/src/link", []mount.Mount{bind("evil", "/workspace/link/workshop"), outer}},
		{"for a volume", "leads through " + dir + "/src/link", []mount.Mount{outer, {Type: mount.TypeVolume, Source: "v", Target: "/workspace/link/workshop"}}},
		{"for memory", "leads through " + dir + "/src/link", []mount.Mount{outer, {Type: mount.TypeTmpfs, Target: "/workspace/link/workshop"}}},
		{"in a copy inside of a mount", "", []mount.Mount{outer, {Type: mount.TypeVolume, Source: "v", Target: "/workspace/x"}, bind("evil", "/workspace/x/only-in-the-copy")}},
		{"it is gone", "run `workshop up` again", []mount.Mount{outer, bind("evil", "/workspace/gone/workshop")}},
		{"a source", "leads through " + dir + "/toEvil", []mount.Mount{bind("toEvil", "/data")}},
		{"a pin at the same path", "leads through " + dir + "/toEvil", []mount.Mount{
			{Type: mount.TypeBind, Source: dir, Target: dir}, {Type: mount.TypeBind, Source: dir + "/toEvil", Target: dir + "/toEvil", ReadOnly: true},
		}},
		{"a repository at its own path", "leads through " + dir + "/src/link", []mount.Mount{{Type: mount.TypeBind, Source: dir + "/src/link", Target: dir + "/src/link", ReadOnly: true}}},
		{"programs of the machine", "", []mount.Mount{{Type: mount.TypeBind, Source: dir + "/toEvil", Target: dir + "/toEvil", ReadOnly: true}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := ways(test.mounts, []string{dir + "/toEvil"})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

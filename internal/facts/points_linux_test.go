package facts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// B7, B12: a target inside of another mount leads through that one's source. A link
// there is refused, wherever it leads, and a missing mount point is made by nobody.
func TestTargetsThroughLinks(t *testing.T) {
	tests := []struct{ name, mounts, code string }{
		{"a link, ro", "[./src:/workspace, ./evil:/workspace/link/workshop-init]", "mount-target-link"},
		{"a link, rw", "['./src:/workspace:rw', ./evil:/workspace/link/workshop-init]", "mount-target-link"},
		{"the last part", "['./src:/workspace:rw', ./evil:/workspace/link]", "mount-target-link"},
		{"a link that leads nowhere", "['./src:/workspace:rw', ./evil:/workspace/nowhere]", "mount-target-link"},
		{"of a copy", "['./src:/workspace:rw', {source: ./evil, target: /workspace/link/run, copy: true}]", "mount-target-link"},
		{"in a copy", "[{source: ./src, target: /workspace, copy: true}, ./evil:/workspace/link/workshop-init]", "mount-target-link"},
		{"through two mounts", "['./src:/workspace:rw', ./in:/workspace/in, ./evil:/workspace/in/link/x]", "mount-target-link"},
		{"missing", "['./src:/workspace:rw', ./evil:/workspace/new]", "mount-point-missing"},
		{"a directory", "['./src:/workspace:rw', ./evil:/workspace/in]", ""},
		{"through a source that is a link", "['./toSrc:/workspace:rw', ./evil:/workspace/in]", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, o := project(t, "")
			write(t, dir, "src/in/x", "")
			write(t, dir, "in/x", "")
			write(t, dir, "evil/x", "")
			for name, to := range map[string]string{"src/link": "/opt/workshop", "src/nowhere": "/nowhere", "in/link": "/opt/workshop", "toSrc": "src"} {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(dir, "src"), 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "workshop.yaml", "workshop:\n  name: facts-test\n  container:\n    image: x:1\n    mounts: "+test.mounts+"\n  workers: [one]\n")
			var list diag.List
			if o.Workshop, list = workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{Home: "/home/nobody"}); list.HasErrors() {
				t.Fatal(list)
			}
			var err error
			if o.Compiled, err = compose.Compile(o.Workshop); err != nil {
				t.Fatal(err)
			}
			_, list = judge(t, o)
			var want []string
			if test.code != "" {
				want = []string{test.code}
			}
			if got := codes(list); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v\n%v", got, want, list)
			}
		})
	}
}

// B8: an up that is refused has made nothing on the host: no directory through a
// link, nor in a directory that programs of the host read.
func TestNothingIsMadeForARefusedMount(t *testing.T) {
	for name, source := range map[string]string{"a link": "./a/b/c", "protected": "./.git/b", "a git directory": "./bare/hooks/b", "protected in another case": "./.VScode/b"} {
		t.Run(name, func(t *testing.T) {
			dir, o := project(t, "    mounts: ['"+source+":/out:rw']\n")
			write(t, dir, "bare/HEAD", "ref: refs/heads/main\n")
			for _, d := range []string{".git", "bare/objects", "bare/refs", "bare/hooks"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(".git", filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
			_, list := judge(t, o)
			if !list.HasErrors() || list[0].Code != "mount-source-create" {
				t.Errorf("got %v", list)
			}
			for _, made := range []string{".git/b", "bare/hooks/b", ".VScode"} {
				if _, err := os.Lstat(filepath.Join(dir, made)); err == nil {
					t.Errorf("%s was made", made)
				}
			}
		})
	}
}

package facts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// B7: an engine is told paths in JSON, where a name that isn't UTF-8 is the name of
// what stands beside it: a source that leads through one is refused where it is
// mounted, and so is a project that lies below one.
func TestSourcesThatAreNotUTF8(t *testing.T) {
	const odd, told = "a\xff", "a\ufffd" // the second is what JSON makes of the first
	tests := []struct{ name, mount string }{
		{"a link", "./data:/data"},
		{"a link, rw", "./data:/data:rw"},
		{"a copy", "{source: ./data, target: /data, copy: true}"},
		{"below a link", "./data/below:/data"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, o := project(t, "    mounts: ["+test.mount+"]\n")
			write(t, dir, odd+"/below/x", "")
			write(t, dir, "victim/key", "")
			for name, to := range map[string]string{"data": odd, told: "victim"} {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			_, list := judge(t, o)
			if len(list) != 1 || list[0].Code != "mount-source-not-utf8" || list[0].Range.Start.Line != 5 ||
				!strings.Contains(list[0].Summary, `a\xff`) {
				t.Errorf("got %v", list)
			}
		})
	}
	t.Run("the project", func(t *testing.T) {
		dir, o := project(t, srcAndOutput)
		o.ProjectDir = filepath.Join(dir, odd)
		write(t, o.ProjectDir, "src/x", "")
		write(t, dir, told+"/src/x", "")
		f, _, list := Collect(t.Context(), o)
		if len(list) != 1 || list[0].Code != "project-dir" || !strings.Contains(list[0].Summary, "rename it") || f.ProjectDir != "" {
			t.Errorf("got %v", list)
		}
		if _, err := os.Lstat(filepath.Join(o.ProjectDir, "output")); err == nil {
			t.Error("a directory was made in a project that is refused")
		}
	})
	t.Run("U+FFFD itself", func(t *testing.T) {
		dir, o := project(t, "    mounts: ['./data:/data']\n")
		write(t, dir, told+"/x", "")
		if err := os.Symlink(told, filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
		c, list := judge(t, o)
		if len(list) > 0 {
			t.Fatal(list)
		}
		if problems := compose.Check(c); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

//go:build linux

package facts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// B40: a worker mounts what lies below a source of its workshop, also where a
// link leads elsewhere in the project, and the workshop's own source is
// mounted by nobody.
func TestLinkOutOfTheWorkshopsSource(t *testing.T) {
	for name, tt := range map[string]struct {
		link string
		want []string
	}{
		"inside":  {"real", nil},
		"outside": {"../private", []string{"mount-leads-out"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, o := projectOf(t, "    mounts: [./src:/src]\n", "[{name: one, container: {mounts: [./src/sub:/src]}}]")
			write(t, dir, "src/real/x", "")
			write(t, dir, "private/x", "")
			if err := os.Symlink(tt.link, filepath.Join(dir, "src/sub")); err != nil {
				t.Fatal(err)
			}
			_, list := judge(t, o)
			if got := codes(list); !slices.Equal(got, tt.want) {
				t.Errorf("problems %v, want %v\n%v", got, tt.want, list)
			}
		})
	}
}

package firewall

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestText: the ruleset as a person reads it. That a kernel has the same is
// tested in internal/room, by reading it back with iptables-save.
func TestText(t *testing.T) {
	for file, o := range map[string]RulesetOptions{
		"web":   {},
		"ports": {Ports: ports(t, "8000-8010,22,5432")},
		"open":  {Open: true, Ports: ports(t, "22")},
	} {
		for suffix, f := range map[string]Family{".v4": V4, ".v6": V6} {
			path := filepath.Join("testdata", "rules", file+suffix)
			got := NewRuleset(o).Text(f)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
}

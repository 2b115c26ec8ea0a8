package hostfirewall

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name   string
		tool   Tool
		remove bool
	}{
		{"iptables.sh", IPTables, false}, {"nftables.nft", NFTables, false}, {"pf.conf", PF, false},
		{"remove.sh", IPTables, true}, {"remove.nft", NFTables, true}, {"remove.conf", PF, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Remove(c.tool, 1000)
			if !c.remove {
				var err error
				if got, err = Export(c.tool, sample()); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join("testdata", c.name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/facts"
)

// B8: what workers may have changed outside of a directory that is gone isn't forgotten
// by a plain prune.
func TestB8_PruneKeepsWhatWasNotLookedAt(t *testing.T) {
	home, gone, other := RealPath(t.TempDir()), filepath.Join(t.TempDir(), "gone"), RealPath(t.TempDir())
	var said bytes.Buffer
	env := testEnv(&Env{Dir: home, Home: home, Lookup: func(string) (string, bool) { return "", false }}, &said)
	for project, root := range map[string]string{"inside": filepath.Join(gone, "src"), "outside": other} {
		dir := filepath.Join(env.recordsDir(), project)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		record, err := json.Marshal(map[string]any{"Project": project, "Dir": gone, "Roots": []string{root}, "Down": true})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "project.json"), record, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		all  bool
		want string
	}{{false, "inside"}, {true, "inside outside"}} {
		records, err := facts.Records(env.recordsDir())
		if err != nil {
			t.Fatal(err)
		}
		said.Reset()
		p := &pruner{Env: env, all: c.all, records: records}
		p.gone(places{})
		var names []string
		for _, u := range p.out {
			name, _, _ := strings.Cut(u.Name, " ")
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("all %t: %q would be removed, want %q", c.all, got, c.want)
		}
		if kept := strings.Contains(said.String(), "the record of outside stays"); kept == c.all || !c.all && !strings.Contains(said.String(), other) {
			t.Errorf("all %t: said %s", c.all, said.String())
		}
	}
}

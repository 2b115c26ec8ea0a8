package workshop

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestPathsAreShownAsTheyAre: B7: a path can't turn the line of `config` or `up`
// that shows it, nor drive the terminal.
func TestPathsAreShownAsTheyAre(t *testing.T) {
	load := func(source, target string) string {
		_, list := Load(fstest.MapFS{
			"workshop.yaml":     {Data: []byte("workshop:\n  name: a\n  container:\n    image: i:1\n    mounts: [{source: \"./a" + source + "\", target: \"/a" + target + "\"}]\n  workers: [w]\n")},
			"workers/w.md":      {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
			"a" + source + "/x": {},
		}, "workshop.yaml", testOptions())
		return list.Error()
	}
	for _, c := range []string{`\e`, `\x7f`, `\u202e`, `\u2066`, `\u2028`, `\x9b`, `\t`} {
		for which, got := range map[string]string{"source": load(c, ""), "target": load("", c)} {
			if !strings.Contains(got, "characters that no path here has") {
				t.Errorf("%s with %s: got %q", which, c, got)
			}
		}
	}
	if got := load("é עב", "ü"); strings.Contains(got, "characters") {
		t.Error(got)
	}
}

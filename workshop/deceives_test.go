package workshop

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
)

// TestPathsAreShownAsTheyAre: B7: a path can't turn the line of `config` or `up`
// that shows it, nor drive the terminal.
func TestPathsAreShownAsTheyAre(t *testing.T) {
	load := func(source, target string) string {
		_, list := Load(t.Context(), fstest.MapFS{
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

// TestYAMLIsWhatIsShown: B41: workshop.yaml holds nothing, in comments and text,
// that editors and diffs don't show or show in another place.
func TestYAMLIsWhatIsShown(t *testing.T) {
	for _, c := range []string{"\u2028", "\r", "\u0085", "\u202e", "\u2069", "\u200b", "\U000e0041"} {
		for _, text := range []string{"# an image" + c + "of ours\n", "  description: an image" + c + "of ours\n"} {
			_, list := Load(t.Context(), fstest.MapFS{
				"workshop.yaml": {Data: []byte("workshop:\n  name: a\n" + text + "  container:\n    image: i:1\n  workers: [w]\n")},
				"workers/w.md":  {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
			}, "workshop.yaml", testOptions())
			if len(list) != 1 || list[0].Code != "not-text" || list[0].Range.Start.Line != 3 || list[0].Range.Start.Column < 11 {
				t.Errorf("%q: got %v", text, list)
			}
		}
	}
}

// TestMappedHosts: B24: a host that isn't the name that it looks like is shown as
// the one that it is.
func TestMappedHosts(t *testing.T) {
	for host, want := range map[string]string{
		`api.github.com\u200b.example.net`: "api.github.com.example.net",
		"api.example。net":                  "api.example.net",
		"аpi.example.net":                  "xn--pi-6kc.example.net",
		"api.example.net":                  "",
	} {
		_, list := Load(t.Context(), fstest.MapFS{
			"workshop.yaml": {Data: []byte("workshop:\n  name: a\n  container:\n    image: i:1\n    network: {mode: restricted, allow: [\"" + host + "\"]}\n  workers: [w]\n")},
			"workers/w.md":  {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
		}, "workshop.yaml", testOptions())
		if want == "" && len(list) == 0 {
			continue
		}
		if len(list) != 1 || list[0].Code != "mapped-host" || list[0].Severity != diag.Warning || list[0].Summary != "the host is read as "+want || list[0].Range.Start.Line != 5 {
			t.Errorf("%s: got %v, want %s", host, list, want)
		}
	}
}

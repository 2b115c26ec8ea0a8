package compose

import (
	"testing"

	"github.com/llmdo/workshop/diag"
)

// A comment says which file a line is of: one of another repository isn't taken for the
// project's.
func TestPlaces(t *testing.T) {
	for file, want := range map[string]string{
		"workshop.yaml":                             "workshop.yaml:3",
		"/home/me/app/w.yaml":                       "w.yaml:3",
		"git+https://a.example/b//c/workshop.yaml":  "git+https://a.example/b//c/workshop.yaml:3",
		"oci://a.example/b/workers/\nx: y\x1b[m.md": "oci://a.example/b/workers/?x: y?[m.md:3",
	} {
		src := diag.Source{Range: diag.Range{Filename: file, Start: diag.Pos{Line: 3}}}
		if got := string(appendPlace(nil, src)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

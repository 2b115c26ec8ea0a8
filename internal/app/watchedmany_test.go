package app

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/facts"
)

// TestB08_DecoysHideNothing: what a worker changed is named among thousands of files
// that it made to hide it, and --verbose names them all.
func TestB08_DecoysHideNothing(t *testing.T) {
	var changes []facts.Change
	for i := range 300 {
		changes = append(changes, facts.Change{Path: fmt.Sprintf("/p/deep%d", i), Kind: facts.NotChecked, Why: "deep"})
	}
	for i := range 300 {
		changes = append(changes, facts.Change{Path: fmt.Sprintf("/p/%03d/.envrc", i), Kind: facts.New}, facts.Change{Path: fmt.Sprintf("/p/%03d/.npmrc", i), Kind: facts.Changed})
	}
	changes = append(changes, facts.Change{Path: "/p/z/.git/config", Kind: facts.Changed}, facts.Change{Path: "/p/z/.mcp.json", Kind: facts.New})
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		a := testEnv(&Env{Lookup: func(string) (string, bool) { return "", false }}, &out)
		a.Verbose = verbose
		a.sayChanges(changes)
		text := out.String()
		for _, want := range []string{"changed since `up`: /p/z/.git/config", "new since `up`: /p/z/.mcp.json", "new since `up`: /p/000/.envrc", "not fully checked: /p/deep0", "a worker may have written this", "review or remove it"} {
			if !strings.Contains(text, want) {
				t.Errorf("verbose %v: %q isn't in\n%.3000s", verbose, want, text)
			}
		}
		if lines, more := strings.Count(text, "warning"), strings.Contains(text, "and 802 more; --verbose"); verbose && (lines != len(changes) || more) || !verbose && (lines != maxChanges+1 || !more) {
			t.Errorf("verbose %v: %d lines, told how many more: %v", verbose, lines, more)
		}
	}
}

package app

import (
	"bytes"
	"fmt"
	"slices"
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
		a.sayChanges(changes, "the first `up`")
		text := out.String()
		for _, want := range []string{"changed since the first `up`: /p/z/.git/config", "new since the first `up`: /p/z/.mcp.json", "new since the first `up`: /p/000/.envrc", "not fully checked: /p/deep0", "a worker may have written this", "review or remove it"} {
			if !strings.Contains(text, want) {
				t.Errorf("verbose %v: %q isn't in\n%.3000s", verbose, want, text)
			}
		}
		if lines, more := strings.Count(text, "warning"), strings.Contains(text, "and 802 more; --verbose"); verbose && (lines != len(changes) || more) || !verbose && (lines != maxChanges+1 || !more) {
			t.Errorf("verbose %v: %d lines, told how many more: %v", verbose, lines, more)
		}
	}
}

// TestB08_HintsOfChanges: what is removed can't be looked at.
func TestB08_HintsOfChanges(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kinds []facts.ChangeKind
		want  string
	}{
		{"removed", []facts.ChangeKind{facts.Removed}, "a worker may have removed this; restore it if a program here needs it"},
		{"removed and written", []facts.ChangeKind{facts.Removed, facts.New}, "a worker may have written this; look at it before a program here runs or obeys it"},
		{"named", []facts.ChangeKind{facts.Named}, "a worker may have written this; look at it before a program here runs or obeys it"},
		{"replaced", []facts.ChangeKind{facts.Replaced}, "if the former one still exists, look at it before a program here runs or obeys what is in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var changes []facts.Change
			for _, kind := range tt.kinds {
				changes = append(changes, facts.Change{Path: "/p/" + string(kind), Kind: kind})
			}
			var got []string
			env := &Env{Lookup: func(string) (string, bool) { return "", false }, Events: func(e Event) {
				if e.Kind == Hint {
					got = append(got, e.Text)
				}
			}}
			env.sayChanges(changes, "the first `up`")
			if want := []string{tt.want}; !slices.Equal(got, want) {
				t.Errorf("hints %q, want %q", got, want)
			}
		})
	}
}

// TestB08_DirectoriesAreOneLine: a new directory is one line, however many files it has;
// --verbose names them.
func TestB08_DirectoriesAreOneLine(t *testing.T) {
	of := func(kind facts.ChangeKind, paths ...string) (changes []facts.Change) {
		for _, p := range paths {
			changes = append(changes, facts.Change{Path: p, Kind: kind})
		}
		return changes
	}
	for _, c := range []struct {
		name    string
		changes []facts.Change
		want    []string
	}{
		{"git init", of(facts.New, "/p/sub/.git", "/p/sub/.git/config", "/p/sub/.git/hooks/a", "/p/sub/.git/hooks/b"), []string{"new since the first `up`: /p/sub/.git (3 files) (B8)"}},
		{"removed", of(facts.Removed, "/p/.vscode", "/p/.vscode/a", "/p/.vscode/b"), []string{"removed since the first `up`: /p/.vscode (2 files) (B8)"}},
		{"named", func() []facts.Change {
			named := of(facts.Named, "/p/tools", "/p/tools/a", "/p/tools/b", "/p/x")
			for i := range named {
				named[i].Why = "/p/.git/config"
			}
			return named
		}(), []string{"named by /p/.git/config now: /p/tools (2 files) (B8)", "named by /p/.git/config now: /p/x (B8)"}},
		{"one file", of(facts.New, "/p/.vscode", "/p/.vscode/tasks.json"), []string{"new since the first `up`: /p/.vscode (1 file) (B8)"}},
		{"no file", of(facts.New, "/p/.vscode"), []string{"new since the first `up`: /p/.vscode (B8)"}},
		{"a name of its own", of(facts.New, "/p/x", "/p/x/a/.envrc", "/p/x/config", "/p/x/hooks/a"), []string{"new since the first `up`: /p/x (2 files) (B8)", "new since the first `up`: /p/x/a/.envrc (B8)"}},
		{"one in another", of(facts.New, "/p/.github", "/p/.github/a", "/p/.github/b", "/p/.github/g", "/p/.github/g/config", "/p/.github/g/hooks/a"), []string{
			"new since the first `up`: /p/.github (2 files) (B8)", "new since the first `up`: /p/.github/g (2 files) (B8)"}},
		{"a directory of before", of(facts.New, "/p/.cursor/a", "/p/.cursor/b"), []string{"new since the first `up`: /p/.cursor/a (B8)", "new since the first `up`: /p/.cursor/b (B8)"}},
		{"other kinds", append(of(facts.New, "/p/x"), facts.Change{Path: "/p/x/a", Kind: facts.Changed}, facts.Change{Path: "/p/x/b", Kind: facts.Changed}), []string{
			"new since the first `up`: /p/x (B8)", "changed since the first `up`: /p/x/a (B8)", "changed since the first `up`: /p/x/b (B8)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, verbose := range []bool{false, true} {
				var got []string
				env := &Env{Lookup: func(string) (string, bool) { return "", false }, Verbose: verbose, Events: func(e Event) {
					if e.Kind == Warning {
						got = append(got, e.Text)
					}
				}}
				env.sayChanges(c.changes, "the first `up`")
				if !verbose && !slices.Equal(got, c.want) || verbose && len(got) != len(c.changes) {
					t.Errorf("verbose %v: got %q, want %q", verbose, got, c.want)
				}
			}
		})
	}
}

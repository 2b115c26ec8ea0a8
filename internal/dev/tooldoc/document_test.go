package tooldoc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"github.com/llmdo/workshop/internal/session"
)

func TestUpToDate(t *testing.T) {
	have, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Document(string(have))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(have) {
		t.Error("docs/tools.md differs from the tools: run make generate")
	}
}

// What is written by hand is about tools that there are, and the examples have
// arguments that the schemas have.
func TestTexts(t *testing.T) {
	all := session.Described()
	for name := range texts {
		if !slices.ContainsFunc(all, func(x session.Tool) bool { return x.Name == name }) {
			t.Errorf("a text about %s, which is no tool", name)
		}
	}
	for _, x := range all {
		var s schema
		if err := json.Unmarshal(x.InputSchema, &s); err != nil {
			t.Fatal(err)
		}
		if len(texts[x.Name].examples) == 0 || len(texts[x.Name].errors) == 0 {
			t.Errorf("%s has no example or no errors", x.Name)
		}
		for _, example := range texts[x.Name].examples {
			words, err := shell.Fields(example, func(string) string { return "" })
			if err != nil {
				t.Errorf("%s: %v", example, err)
				continue
			}
			if words[0] != strings.Replace(x.Name, "WORKER", "reviewer", 1) {
				t.Errorf("%s is an example of %s", words[0], x.Name)
			}
			given := map[string]bool{}
			for _, w := range words[1:] {
				key, _, ok := strings.Cut(w, "=")
				if given[key] = true; !ok || s.Properties.of[key] == nil {
					t.Errorf("%s: %q is no argument of %s", example, key, x.Name)
				}
			}
			for _, r := range s.Required {
				if !given[r] {
					t.Errorf("%s: %s isn't given", example, r)
				}
			}
		}
	}
}

// A list shows every argument, with its type and limits.
func TestList(t *testing.T) {
	const text = `{"type":"object","required":["b"],"properties":{
		"b":{"type":"integer","default":65536,"maximum":4194304,"description":"how * many"},
		"a":{"type":"array","maxItems":3,"items":{"type":"string"}},
		"c":{"type":"string","default":"x","maxLength":10},
		"m":{"type":"object","additionalProperties":{"type":"string"}}}}`
	const want = "\n*Arguments:*\n\n- `b` (integer, **required**, at most 4194304 (4 MiB)): how \\* many\n" +
		"- `a` (list of string, at most 3)\n" +
		"- `c` (string, default \"x\", at most 10 characters)\n" +
		"- `m` (map of string)\n"
	var b strings.Builder
	if err := list(&b, json.RawMessage(text)); err != nil || b.String() != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, b.String(), want)
	}
}

func TestMissingMarkers(t *testing.T) {
	if _, err := Document("nothing"); err == nil {
		t.Error("a document without its markers is taken")
	}
}

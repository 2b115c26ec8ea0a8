package importer

import (
	"encoding/json"
	"strings"
	"testing"
)

// Nothing of a repository becomes a command of its own in a line that people paste
// (B43): words are quoted, and what isn't shown as a whole isn't in a line.
func TestHintsArePasteable(t *testing.T) {
	long := "echo " + strings.Repeat(" ", 80) + "; touch x"
	for _, tt := range []struct {
		name, key string
		value     any
		hint      string
	}{
		{"words", "postCreateCommand", []string{"npm", "ci"}, "run it when the worker is up: `workshop exec dev -- npm ci`"},
		{"a shell's words", "postCreateCommand", []string{"true", ";", "touch", "$(id)", "it's", ""}, "run it when the worker is up: `workshop exec dev -- true ';' touch '$(id)' 'it'\\''s' ''`"},
		{"text", "postCreateCommand", "npm ci && true", "run it when the worker is up: `workshop exec dev -- sh -c 'npm ci && true'`"},
		{"a backquote", "postCreateCommand", "echo `id`", "read it, and run it when the worker is up: `workshop exec dev -- COMMAND`"},
		{"too long", "postCreateCommand", long, "read it, and run it when the worker is up: `workshop exec dev -- COMMAND`"},
		{"two lines", "postCreateCommand", "true\ntouch x", "read it, and run it when the worker is up: `workshop exec dev -- COMMAND`"},
		{"an escape", "postCreateCommand", "true \x1b[2K", "read it, and run it when the worker is up: `workshop exec dev -- COMMAND`"},
		{"several", "postCreateCommand", map[string]string{"a": "true"}, "read it, and run it when the worker is up: `workshop exec dev -- COMMAND`"},
		{"an option", "onCreateCommand", []string{"-x"}, "run it when the worker is up: `workshop exec dev -- -x`"},
		{"on the host", "initializeCommand", []string{"true", ";", "id"}, "read it, and run it yourself if it is needed"},
		{"a file", "dockerComposeFile", "../compose.yaml", "import that file: `workshop init --from compose.yaml`"},
		{"a file with a command", "dockerComposeFile", "x; touch /tmp/x #", "import that file: `workshop init --from '.devcontainer/x; touch /tmp/x #'`"},
		{"a file like an option", "dockerComposeFile", "../--bare", "import that file: `workshop init --from ./--bare`"},
		{"a file with a backquote", "dockerComposeFile", "x`id`", "import that file: `workshop init --from FILE`"},
		{"a long file", "dockerComposeFile", long, "import that file: `workshop init --from FILE`"},
	} {
		text, err := json.Marshal(map[string]any{"image": "x:1", tt.key: tt.value})
		if err != nil {
			t.Fatal(err)
		}
		in := Read(text, Options{File: ".devcontainer/devcontainer.json", Base: "p", Project: "/p", Worker: "dev"})
		if len(in.Problems) != 1 || in.Problems[0].Hint != tt.hint {
			t.Errorf("%s: got %v\n%q, want the hint\n%q", tt.name, in.Problems, in.Problems[0].Hint, tt.hint)
		}
	}
}

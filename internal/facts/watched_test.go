package facts

import "testing"

// TestB08_Watched: by its path alone, what a snapshot has by its name.
func TestB08_Watched(t *testing.T) {
	for path, want := range map[string]bool{
		".envrc": true, "/workspace/a/.envrc": true, "CLAUDE.md": true, "main.go": false, "/workspace/src/m.py": false,
		".github/workflows/x.yml": true, "/w/.vscode/tasks.json": true, ".cursor/rules/a.md": true, "github/workflows/x.yml": false,
		".git/hooks/pre-commit": true, ".git/hooks/pre-commit.sample": false, ".git/config": true, ".git/info/attributes": true, ".git/objects/info/alternates": true, "objects/info/alternates": false, ".git/HEAD": false,
		".cargo/config.toml": true, ".cargo/credentials": false, ".direnv/x.rc": true,
		"node_modules/a/.github/x.yml": false, "node_modules/a/.envrc": false, "a/../.envrc": true, "": false, "/": false, ".": false,
	} {
		if got := Watched(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

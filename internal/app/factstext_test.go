package app

import (
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// What `up` says about B8 is what the mounts do: `git: rw` leaves .git
// writable and holds its hooks alone.
func TestProtectedText(t *testing.T) {
	dirs := []compose.Protected{
		{Path: ".git", Kind: compose.GitDir}, {Path: ".git/hooks", Kind: compose.GitHooks}, {Path: ".github"},
		{Path: "sub/x.git", Kind: compose.GitDir}, {Path: "sub/x.git/hooks", Kind: compose.GitHooks},
	}
	mount := func(git bool) workshop.Worker {
		return workshop.Worker{Container: workshop.Container{Mounts: []workshop.Mount{
			{Source: workshop.Value[string]{V: "./repo"}, ReadWrite: true, GitWritable: git},
			{Source: workshop.Value[string]{V: "./other"}, ReadWrite: true, GitWritable: !git},
		}}}
	}
	for _, tt := range []struct {
		name    string
		workers []workshop.Worker
		want    string
	}{
		{"read-only", []workshop.Worker{mount(false)}, ".git, .github, sub/x.git"},
		{"git: rw", []workshop.Worker{mount(true)}, ".git/hooks, .github, sub/x.git/hooks"},
		{"both", []workshop.Worker{mount(true), mount(false)},
			".git (writable where `git: rw`), .git/hooks, .github, sub/x.git (writable where `git: rw`), sub/x.git/hooks"},
	} {
		if got := ProtectedText(&workshop.Workshop{Workers: tt.workers}, "./repo", dirs); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

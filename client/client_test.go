package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/client"
)

// lonely is a directory with these files, a home of its own, and no engine.
func lonely(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "WORKSHOP_FILE", "WORKSHOP_PROJECT_NAME", "DOCKER_CONTEXT"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(dir, "no.sock"))
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Problems of the file are data, and nothing is printed.
func TestInvalid(t *testing.T) {
	dir := lonely(t, map[string]string{"workshop.yaml": "workshop:\n  name: x\n  container: {image: host, mount: []}\n  workers: [one]\n"})
	var log strings.Builder
	_, err := client.Open(t.Context(), client.Options{Dir: dir, Log: &log})
	e, ok := errors.AsType[*client.InvalidError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var lines []string
	for _, d := range e.Diagnostics {
		lines = append(lines, d.Error())
	}
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "workshop.yaml:3:") || !strings.Contains(e.Error(), "is invalid") || !strings.Contains(all, `"mount"`) && !strings.Contains(all, "mount") {
		t.Errorf("%s\n%v", all, err)
	}
	if log.Len() > 0 {
		t.Errorf("printed: %s", &log)
	}
}

func TestNoFileAndNoEngine(t *testing.T) {
	dir := lonely(t, nil)
	if _, err := client.Open(t.Context(), client.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "workshop init") {
		t.Errorf("without a file: %v", err)
	}
	dir = lonely(t, map[string]string{
		"workshop.yaml":  "workshop:\n  name: x\n  container: {image: host}\n  workers: [one]\n",
		"workers/one.md": "---\nname: one\ndescription: does nothing\ntools: [read_file]\n---\nNothing.\n",
	})
	_, err := client.Open(t.Context(), client.Options{File: filepath.Join(dir, "workshop.yaml"), Engine: "docker", Up: true})
	if err == nil || !strings.Contains(err.Error(), "no.sock") {
		t.Errorf("without an engine: %v", err)
	}
	if _, ok := errors.AsType[*client.NotUpError](err); ok {
		t.Errorf("an engine that doesn't answer is no workshop that isn't up: %v", err)
	}
}

// B46: a workshop that isn't what its lock says is not opened, and no engine is asked.
func TestFrozen(t *testing.T) {
	files := map[string]string{
		"workshop.yaml": "workshop:\n  name: x\n  container: {image: host}\n  workers: [{name: one, tools: [read_file], instructions: x}]\n",
	}
	const stale = "version: 1\nfiles: {}\nimages: {host: unpinned}\ncan: []\n...\n"
	for _, c := range []struct {
		name, lock, ci string
		frozen         bool
		want           string
	}{
		{"without a lock", "", "", true, "there is no workshop.lock"},
		{"another lock", stale, "", true, "+ one tool read_file"},
		{"another lock in CI", stale, "true", false, "+ one tool read_file"},
		{"another lock on a desk", stale, "", false, "no.sock"},
		{"no lock in CI", "", "true", false, "no.sock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if files["workshop.lock"] = c.lock; c.lock == "" {
				delete(files, "workshop.lock")
			}
			dir := lonely(t, files)
			for _, name := range []string{"CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "JENKINS_URL", "WORKSHOP_FROZEN"} {
				t.Setenv(name, "")
			}
			t.Setenv("CI", c.ci)
			_, err := client.Open(t.Context(), client.Options{Dir: dir, Engine: "docker", Up: true, Frozen: c.frozen})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// The pages show the programs of the examples as they are.
func TestDocument(t *testing.T) {
	for page, name := range map[string]string{"go": "client", "api": "policy-client"} {
		doc, err := os.ReadFile("../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile("../examples/" + name + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "```go\n"+string(program)+"```\n") {
			t.Errorf("docs/%s.md isn't what examples/%s/main.go is: copy it", page, name)
		}
	}
}

package facts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmdo/workshop/workshop"
)

func TestSecretValues(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"workshop.yaml": `workshop:
  name: x
  container:
    image: host
    secrets:
      - {name: token, env: TOKEN}
      - {name: absent, env: ABSENT}
      - {name: key, file: ./key}
      - {name: missing, file: ./missing}
  workers:
    - {name: a, container: {secrets: [token, key, absent, missing]}}
    - {name: b, container: {secrets: [token]}}
`,
		"workers/a.md": "---\nname: a\ndescription: a\ntools: [read_file]\n---\na\n",
		"workers/b.md": "---\nname: b\ndescription: b\ntools: [read_file]\n---\nb\n",
		"key":          "of a file\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lookup := func(name string) (string, bool) { return "of the environment", name == "TOKEN" }
	w, list := workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: lookup})
	if list.HasErrors() {
		t.Fatal(list)
	}
	got := SecretValues(w, dir, lookup)
	want := []string{"of the environment", "of a file\n", "of a file"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

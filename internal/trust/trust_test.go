package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

type rule struct {
	Tool  string `json:"tool"`
	Match string `json:"match,omitempty"`
}

// What a user accepted is kept by file, for this user alone; what can't be read
// is no yes.
func TestRules(t *testing.T) {
	a := Rules[rule](filepath.Join(t.TempDir(), "config"))
	if r, err := a.Of("/x/workshop.yaml"); err != nil || r != nil {
		t.Fatal(r, err)
	}
	done := make(chan error)
	for i := range 60 {
		go func() { done <- a.Add("/x/workshop.yaml", rule{"shell", "git " + strconv.Itoa(i%30)}) }()
	}
	for range 60 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Add("/y/workshop.yaml", rule{Tool: "mcp__a"}); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Of("/x/workshop.yaml"); err != nil || len(r) != 30 {
		t.Error(r, err)
	}
	if r, err := a.Of("/y/workshop.yaml"); err != nil || len(r) != 1 {
		t.Error(r, err)
	}
	if info, err := os.Stat(a.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	for _, text := range []string{"", "{", `{"files":{"/x":["shell"]}}`, `{"rules":[]}`} {
		if err := os.WriteFile(a.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := a.Of("/x"); err == nil {
			t.Errorf("%s: %v", text, r)
		}
		if err := a.Add("/x", rule{Tool: "shell"}); err == nil {
			t.Errorf("%s: a rule is added", text)
		}
	}
}

// Files of earlier versions are read as they are.
func TestEarlierFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "approved.json"), []byte("{\n  \"files\": {\n    \"/x\": [\n      {\n        \"tool\": \"shell\",\n        \"match\": \"git status\"\n      }\n    ]\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Rules[rule](dir).Of("/x"); err != nil || len(r) != 1 || r[0] != (rule{"shell", "git status"}) {
		t.Error(r, err)
	}
	file := filepath.Join(dir, "builds", "sha256-abc")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("2026-01-01T00:00:00Z one /x\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b := Builds{dir}
	if has, err := b.Has("sha256:abc"); err != nil || !has {
		t.Error(has, err)
	}
	if has, err := b.Has("sha256:abd"); err != nil || has {
		t.Error(has, err)
	}
	if err := b.Add("sha256:abd", "two /y", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "builds", "sha256-abd")); err != nil || string(text) != "1970-01-01T00:00:00Z two /y\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{"", ".", "..", "../x", "/etc/passwd", "a/b", `a\b`} {
		if has, err := b.Has(bad); err == nil {
			t.Errorf("%q: %v", bad, has)
		}
	}
}

// B47: a source was accepted as one commit, with its content and who signed it.
func TestSources(t *testing.T) {
	l := Sources(t.TempDir())
	one := Source{Commit: "c", Tree: "h1:x", Signer: "SHA256:k"}
	if err := l.Add("git.example.org/acme//a", one); err != nil {
		t.Fatal(err)
	}
	if has, err := l.Has("git.example.org/acme//a", one); err != nil || !has {
		t.Error(has, err)
	}
	for _, other := range []Source{{"d", "h1:x", "SHA256:k"}, {"c", "h1:y", "SHA256:k"}, {"c", "h1:x", ""}, {"c", "h1:x", "SHA256:l"}} {
		if has, err := l.Has("git.example.org/acme//a", other); err != nil || has {
			t.Error(other, has, err)
		}
	}
	if has, err := l.Has("git.example.org/acme", one); err != nil || has {
		t.Error("another source", has, err)
	}
}

// B33: a credential was agreed to for the very line, in one project.
func TestCredentials(t *testing.T) {
	l := Credentials(t.TempDir())
	none := func(string, Credential) bool { return true }
	if err := l.Remove(none); err != nil {
		t.Error("nothing to remove:", err)
	}
	one, two, npm := Credential{"github", "w {host: a}"}, Credential{"github", "v {host: a}"}, Credential{"npm", "w {host: a}"}
	if err := errors.Join(l.Add("/p", one), l.Add("/p", npm), l.Add("/q", two)); err != nil {
		t.Fatal(err)
	}
	has := func(dir string, c Credential, want bool) {
		t.Helper()
		if has, err := l.Has(dir, c); err != nil || has != want {
			t.Errorf("%s %v: %v, %v", dir, c, has, err)
		}
	}
	has("/p", one, true)
	has("/p", two, false)
	has("/q", one, false)
	if err := l.Remove(func(_ string, c Credential) bool { return c.Name == "github" }); err != nil {
		t.Fatal(err)
	}
	has("/p", one, false)
	has("/q", two, false)
	has("/p", npm, true)
}

// B47: the user's settings only narrow the machine's.
func TestSettings(t *testing.T) {
	said := func(allow ...string) Said { return Said{File: "/f", Allow: allow} }
	none := Said{}
	for _, c := range []struct {
		name              string
		machine, user     Said
		id                string
		permitted, agreed bool
	}{
		{"nobody says anything", none, none, "git.example.org/acme", true, false},
		{"the user", none, said("git.example.org/acme"), "git.example.org/acme/w//x", true, true},
		{"another of the user", none, said("git.example.org/acme"), "git.example.org/other", true, false},
		{"a longer name", none, said("git.example.org/acme"), "git.example.org/acme-evil/w", true, false},
		{"a longer host", none, said("git.example.org"), "git.example.org.evil.example/w", true, false},
		{"another port", none, said("git.example.org"), "git.example.org:8443/w", true, false},
		{"a part", none, said("git.example.org/*/w"), "git.example.org/a/w//x", true, true},
		{"the machine", said("git.example.org"), none, "git.example.org/a", true, true},
		{"not the machine", said("git.example.org"), none, "other.example/a", false, false},
		{"the user wants more", said("git.example.org"), said("other.example"), "other.example/a", false, false},
		{"the user wants less", said("git.example.org"), said("git.example.org/a"), "git.example.org/b", true, false},
		{"the machine allows none", Said{File: "/f", Allow: []string{}}, said("git.example.org"), "git.example.org/b", false, false},
		{"the user agrees to none", said("git.example.org"), Said{Allow: []string{}}, "git.example.org/b", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Settings{c.machine, c.user}
			if err := s.Permits(c.id); (err == nil) != c.permitted {
				t.Errorf("permits: %v", err)
			}
			if got := s.Agreed(c.id); got != c.agreed {
				t.Errorf("agreed: %v", got)
			}
		})
	}
	s := Settings{Said{Signers: "/a", Boundary: "/c"}, Said{Signers: "/b"}}
	if got := strings.Join(append(s.SignerFiles(), boundaries(s)...), " "); got != "/a /b /c" {
		t.Error(got)
	}
}

func TestParseSaid(t *testing.T) {
	s, err := ParseSaid("/etc/workshop/config.yaml", map[string]any{"sources": map[string]any{"allow": []any{"git.example.org/acme/", "*.example"}}, "signers": "signers", "boundary": "/b.yaml", "engine": "docker"})
	if err != nil || strings.Join(s.Allow, " ") != "git.example.org/acme *.example" || s.Signers != "/etc/workshop/signers" || s.Boundary != "/b.yaml" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := ParseSaid("/f", map[string]any{"sources": map[string]any{"allow": []any{}}}); err != nil || s.Allow == nil {
		t.Errorf("%+v, %v", s, err)
	}
	allow := func(v any) map[string]any { return map[string]any{"sources": map[string]any{"allow": v}} }
	for _, bad := range []map[string]any{
		{"sources": nil}, {"sources": "x"}, {"sources": map[string]any{}}, {"sources": map[string]any{"alow": []any{}}}, {"sources": map[string]any{"allow": []any{}, "deny": []any{}}},
		allow(nil), allow("x"), allow([]any{1}), allow([]any{""}), allow([]any{"a,b"}), allow([]any{"[", "x"}), allow([]any{"https://git.example.org"}),
		{"signers": ""}, {"signers": nil}, {"signers": []any{}}, {"signers": "~/x"}, {"boundary": 1},
	} {
		if s, err := ParseSaid("/f", bad); err == nil {
			t.Errorf("%v: %+v", bad, s)
		}
	}
}

func boundaries(s Settings) (files []string) {
	for _, said := range s.Boundaries() {
		files = append(files, said.Boundary)
	}
	return files
}

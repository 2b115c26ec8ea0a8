package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// B47: what the machine's settings say of sources binds, and what can't be read is an
// error.
func TestSourceSettings(t *testing.T) {
	dir := t.TempDir()
	machine, user := filepath.Join(dir, "machine.yaml"), filepath.Join(dir, "workshop/config.yaml")
	env := &Env{MachineSettings: machine, Lookup: func(name string) (string, bool) { return dir, name == "XDG_CONFIG_HOME" }}
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := env.SourceSettings(); err != nil || s.Permits("git.example.org/a") != nil || s.Agreed("git.example.org/a") {
		t.Errorf("no settings: %+v, %v", s, err)
	}
	write(machine, "sources: {allow: [git.example.org]}\nsigners: signers\nboundary: boundary.yaml\n")
	write(user, "engine: docker\nsources: {allow: [git.example.org/a, other.example]}\nsigners: /my/signers\n")
	s, err := env.SourceSettings()
	if err != nil || s.Permits("other.example/x") == nil || s.Agreed("other.example/x") || s.Agreed("git.example.org/b") || !s.Agreed("git.example.org/a/w//x") {
		t.Errorf("%+v, %v", s, err)
	}
	files := s.SignerFiles()
	for _, said := range s.Boundaries() {
		files = append(files, said.Boundary)
	}
	if got, want := strings.Join(files, " "), filepath.Join(dir, "signers")+" /my/signers "+filepath.Join(dir, "boundary.yaml"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if values, _, err := env.UserValues(); err != nil || values["engine"] != "docker" || values["sources"] != nil {
		t.Errorf("%v, %v", values, err)
	}
	for _, text := range []string{"sources: {allow: x}\n", "sources: {alow: []}\n", "signers: ~/x\n", "boundary: [x]\n", "Sources: {allow: []}\nsources: {allow: [\"*\"]}\n"} {
		write(user, text)
		if values, _, err := env.UserValues(); err == nil {
			t.Errorf("%q: %v", text, values)
		}
	}
	write(user, "")
	for _, text := range []string{"engine: docker\n", "sources:\n", "sources: [\n", "[]\n"} {
		write(machine, text)
		if s, err := env.SourceSettings(); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
	if err := os.Remove(machine); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(machine, 0o700); err != nil {
		t.Fatal(err)
	}
	if s, err := env.SourceSettings(); err == nil {
		t.Errorf("a directory: %+v", s)
	}
}

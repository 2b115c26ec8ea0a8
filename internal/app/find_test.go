package app

import (
	"os"
	"path/filepath"
	"testing"
)

// A command line of a hint works in the directory where it is read.
func TestProjectFlags(t *testing.T) {
	here, other := t.TempDir(), filepath.Join(t.TempDir(), "the other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	mine, theirs := filepath.Join(here, "workshop.yaml"), filepath.Join(other, "workshop.yaml")
	for _, file := range []string{mine, theirs} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		settings Settings
		detached bool
		vars     map[string]string
		want     string
	}{
		{name: "looked up"},
		{name: "given, and looked up", settings: Settings{File: "workshop.yaml"}},
		{name: "given", settings: Settings{File: theirs}, want: "-f '" + theirs + "' "},
		{name: "its directory", settings: Settings{File: other}, want: "-f '" + theirs + "' "},
		{name: "by a variable", settings: Settings{File: theirs, Project: "p"}, vars: map[string]string{"WORKSHOP_FILE": theirs, "WORKSHOP_PROJECT_NAME": "p"}},
		{name: "project", settings: Settings{Project: "p"}, want: "-p p "},
		{name: "gone", settings: Settings{File: "gone.yaml", Project: "p"}, want: "-p p "},
		{name: "detached", detached: true, want: "-f " + mine + " "},
		{name: "detached, by a variable", detached: true, settings: Settings{File: theirs}, vars: map[string]string{"WORKSHOP_FILE": theirs}, want: "-f '" + theirs + "' "},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := &Env{Dir: here, Settings: c.settings, Detached: c.detached, Lookup: func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }}
			if got := env.ProjectFlags(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

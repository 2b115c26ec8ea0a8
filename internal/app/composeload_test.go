package app

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/workshop"
)

// The command to paste is of the Compose that is there.
func TestComposeProgram(t *testing.T) {
	both := pluginDirs
	pluginDirs = nil
	t.Cleanup(func() { pluginDirs = both })
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := t.TempDir()
	alone := filepath.Dir(file("docker-compose"))
	config := filepath.Dir(filepath.Dir(file("cli-plugins/docker-compose")))
	home := filepath.Dir(filepath.Dir(filepath.Dir(file(".docker/cli-plugins/docker-compose"))))
	for _, c := range []struct{ path, config, home, want string }{
		{empty, "", empty, "docker compose"},
		{empty + ":" + alone, "", empty, "docker-compose"},
		{alone, config, empty, "docker compose"},
		{alone, "", home, "docker compose"},
	} {
		env := &Env{Home: c.home, Lookup: func(name string) (string, bool) {
			v := map[string]string{"PATH": c.path, "DOCKER_CONFIG": c.config}[name]
			return v, v != ""
		}}
		if got := strings.Join(env.composeProgram(), " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The command to paste works with docker-compose 1.29, which takes one
// --env-file, and with later ones.
func TestComposeCommand(t *testing.T) {
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose (1.29) is not installed")
	dir := t.TempDir()
	facts := []byte("WORKSHOP_FACTS=second\nWORKSHOP_INIT_IMAGE=sha256:1 2\n")
	g := newGenerated(dir, ".workshop/x", []compose.File{
		{Path: compose.ComposeFile, Data: []byte("version: \"3.7\"\nservices:\n  a:\n    image: x\n    labels: {L: \"${X:-none} ${WORKSHOP_FACTS:?}\"}\n")},
		{Path: compose.FactsFile, Data: []byte("version: \"3.7\"\nservices:\n  a:\n    labels: {F: \"${WORKSHOP_INIT_IMAGE:?}\"}\n")},
		{Path: compose.FactsEnv, Data: facts},
	})
	if _, err := g.Write(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".env": "X=1\n", "b.env": "X=2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name      string
		variables []workshop.Variable
		files     []string
		label     string
		warned    bool
	}{
		{"no variables", nil, nil, "none second", false},
		{"variables of .env", []workshop.Variable{{Name: "X"}}, nil, "1 second", false},
		{"of two files", []workshop.Variable{{Name: "X"}}, []string{"b.env"}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said bytes.Buffer
			env := &Env{Dir: dir, Home: dir, Lookup: os.LookupEnv, Settings: Settings{EnvFiles: tt.files}, Events: func(e Event) { said.WriteString(e.Text) }}
			line := env.composeCommand(&Project{ProjectRef: ProjectRef{Name: "x"}, Source: &Source{Workshop: &workshop.Workshop{Variables: tt.variables}, Path: filepath.Join(dir, "workshop.yaml")}}, g, facts)
			if got := strings.Contains(said.String(), "takes one --env-file"); got != (tt.warned && strings.Contains(line, "docker-compose ")) {
				t.Errorf("said %q", said.String())
			}
			if tt.warned {
				return
			}
			cmd := exec.Command("sh", "-c", strings.Replace(strings.TrimSuffix(line, "up"), "docker compose ", "docker-compose ", 1)+"config")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if want := "L: " + tt.label; err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "F: sha256:1 2") {
				t.Errorf("%s\n%v, want %q\n%s", line, err, want, out)
			}
		})
	}
}

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/testutil"
)

// writeFiles writes generated files below dir.
func writeFiles(t testing.TB, dir string, files []File) {
	t.Helper()
	for _, f := range files {
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, os.FileMode(f.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

// docker-compose 1.29 accepts both files together, and stops without the
// second one's variables.
func TestComposeV1Accepts(t *testing.T) {
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose (1.29) is not installed")
	f := withFacts(t, compiled(t, sample(t, 2)), sampleFacts())
	dir := t.TempDir()
	files, err := Render(f)
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, files)
	if files, err = RenderFacts(f); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, files)
	run := func(args ...string) (string, error) {
		cmd := exec.Command("docker-compose", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("--env-file", FactsEnv, "-f", ComposeFile, "-f", FactsFile, "config"); err != nil {
		t.Errorf("refused: %v\n%s", err, out)
	} else {
		t.Log(out)
	}
	if out, err := run("-f", ComposeFile, "config", "-q"); err == nil {
		t.Errorf("accepted without the machine's part:\n%s", out)
	} else {
		t.Log(out)
	}
}

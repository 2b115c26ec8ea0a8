package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
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

// composeV1 runs docker-compose 1.29 in a generated directory.
func composeV1(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	_, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose (1.29) is not installed")
	cmd := exec.Command("docker-compose", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "WORKER_TAG=1.4", "SCANNER_TOOLS=x"}
	for k, v := range goldenEnv {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// docker-compose 1.29 accepts both files of every golden together, and stops
// with the hint where the second one or its variables are missing.
func TestComposeV1Accepts(t *testing.T) {
	for src := range goldens(t) {
		t.Run(filepath.Base(src), func(t *testing.T) {
			w := loadWorkshop(t, src)
			c := withFacts(t, compiled(t, w), factsFor(w))
			if NoPlainCompose(c) != "" {
				return
			}
			root := t.TempDir()
			dir := filepath.Join(root, ".workshop", w.Name.V)
			// 1.29 looks for the build's directory.
			if err := os.Mkdir(filepath.Join(root, "docker"), 0o755); err != nil {
				t.Fatal(err)
			}
			files, err := Render(c)
			if err != nil {
				t.Fatal(err)
			}
			writeFiles(t, dir, files)
			if files, err = RenderFacts(c); err != nil {
				t.Fatal(err)
			}
			writeFiles(t, dir, files)
			if out, err := composeV1(t, dir, "--env-file", FactsEnv, "-f", ComposeFile, "-f", FactsFile, "config"); err != nil {
				t.Errorf("refused: %v\n%s", err, out)
			} else if strings.Contains(out, secondFileMissing) {
				t.Errorf("the second file does not replace the tool volume:\n%s", out)
			}
			if filepath.Base(src) != "smallest" {
				return
			}
			if out, err := composeV1(t, dir, "-f", ComposeFile, "config", "-q"); err == nil || !strings.Contains(out, loadHint) {
				t.Errorf("without the machine's part: %v\n%s", err, out)
			}
			if out, err := composeV1(t, dir, "--env-file", FactsEnv, "-f", ComposeFile, "config"); err != nil || !strings.Contains(out, secondFileMissing) {
				t.Errorf("without the second file the tool volume must be one that does not exist: %v\n%s", err, out)
			}
		})
	}
}

package app

import (
	"os"
	"path/filepath"
	"testing"
)

// TestB45_ResultThatIsALink: a worker writes its answer into the project; a link
// there to a file of the user's isn't followed, as what is wrong with it is shown.
func TestB45_ResultThatIsALink(t *testing.T) {
	project, other := t.TempDir(), t.TempDir()
	for name, dir := range map[string]string{"secret": other, "answer": project} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": filepath.Join(other, "secret"), "in": "answer", "dir": other} {
		if err := os.Symlink(to, filepath.Join(project, link)); err != nil {
			t.Fatal(err)
		}
	}
	env := &Env{Dir: project}
	for file, ok := range map[string]bool{
		"answer": true, "in": true, filepath.Join(other, "secret"): true,
		"out": false, "dir/secret": false, filepath.Join(project, "out"): false,
	} {
		if data, _, err := env.readResult(file, project, nil); (err == nil) != ok || ok != (string(data) == "{}") {
			t.Errorf("%s: %q, %v; want it read: %v", file, data, err, ok)
		}
	}
}

package breaks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/verify"
)

// TestBreaksApply keeps the edits in step with the source, without running
// them: each must still find what it replaces, and name tests that exist.
func TestBreaksApply(t *testing.T) {
	files, err := filepath.Glob("*.edit")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no edits")
	}
	var tests strings.Builder
	sources, err := filepath.Glob("../*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(b)
	}
	promises := map[string]bool{}
	for _, file := range append(files, "no-check.txt", Unchecked) {
		b, err := Read(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(b.Edits) == 0 || strings.HasSuffix(file, ".edit") && (len(b.Fails) == 0 || b.Title == "") {
			t.Errorf("%s: no edit, no title or no test", file)
		}
		for _, e := range b.Edits {
			data, err := os.ReadFile(filepath.Join("../..", e.File))
			if err != nil || strings.Count(string(data), e.Old) != 1 {
				t.Errorf("%s: %s has this %d times (%v):\n%s", file, e.File, strings.Count(string(data), e.Old), err, e.Old)
			}
		}
		for _, name := range b.Fails {
			if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
				t.Errorf("%s: no test %s", file, name)
			}
		}
		for _, id := range b.Verify {
			if verify.MethodOf(id).Promise == "" {
				t.Errorf("%s: verify knows no %s", file, id)
			}
		}
		if m := regexp.MustCompile(`^B\d+`).FindString(file); m != "" {
			promises[m] = true
		}
	}
	// every promise that a scenario cites has a break
	for _, m := range regexp.MustCompile(`func Test(B\d+)_`).FindAllStringSubmatch(tests.String(), -1) {
		if !promises[m[1]] {
			t.Errorf("no break of %s", m[1])
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/breaks"
)

// TestEditsApply keeps the edits in step with the source, without running them:
// each must still find what it replaces, and name tests that exist.
func TestEditsApply(t *testing.T) {
	const root = "../../.."
	files, err := filepath.Glob("../*/*.edit")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no edits")
	}
	for _, file := range files {
		b, err := breaks.Read(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if b.Title == "" || len(b.Fails) == 0 || len(b.Edits) == 0 {
			t.Errorf("%s: no title, no test or no edit", file)
		}
		for _, e := range b.Edits {
			data, err := os.ReadFile(filepath.Join(root, e.File))
			if n := strings.Count(string(data), e.Old); err != nil || n != 1 {
				t.Errorf("%s: %s has this %d times (%v):\n%s", file, e.File, n, err, e.Old)
			}
		}
		for _, name := range b.Fails {
			i := strings.LastIndexByte(name, '.')
			if i < 0 || !strings.Contains(source(t, filepath.Join(root, name[:i])), "func "+name[i+1:]+"(t *testing.T)") {
				t.Errorf("%s: no test %s", file, name)
			}
		}
		if b.Covered == "" {
			continue
		}
		if other, err := breaks.Read(filepath.Join(filepath.Dir(file), b.Covered+".edit")); err != nil || other.Name == b.Name {
			t.Errorf("%s: covered by %s (%v)", file, b.Covered, err)
		}
		if data, _ := os.ReadFile(file); !strings.Contains(string(data), "\nbecause: ") {
			t.Errorf("%s: no reason why nothing notices it alone", file)
		}
	}
}

// source is all tests of a package.
func source(t *testing.T, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

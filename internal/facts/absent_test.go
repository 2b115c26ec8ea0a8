package facts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// A missing source is a warning, once, where `up` would refuse it; a directory that
// `up` makes is none.
func TestAbsent(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	mount := func(line int, source string) workshop.Mount {
		return workshop.Mount{Source: workshop.Value[string]{V: source}, At: diag.Source{Range: diag.Range{Filename: "workshop.yaml", Start: diag.Pos{Line: line, Column: 1}}}}
	}
	made := mount(3, "./output")
	made.ReadWrite = true
	outside := mount(4, "../gone")
	outside.ReadWrite, outside.OutsideProject = true, true
	mounts := []workshop.Mount{mount(1, "./src"), mount(2, "./gone"), made, outside, mount(5, filepath.Join(dir, "src")), mount(6, "/nonexistent/source")}
	mounts = slices.Concat(mounts, mounts) // of two workers
	for source, want := range map[string]string{
		"./gone": "create it: `mkdir -p " + dir + "/gone`, or correct the path", "./gone.d/.config": "create it: `mkdir -p " + dir + "/gone.d/.config`, or correct the path",
		"./README.md": "create that file, or correct the path",
	} {
		if d := Absent([]workshop.Mount{mount(1, source)}, dir, nil); len(d) != 1 || d[0].Hint != want {
			t.Errorf("%s: %+v, want %q", source, d, want)
		}
	}
	// The same mount may lack its mount point: one remedy is said once.
	for hint, want := range map[string]int{"create it: `mkdir -p " + dir + "/gone`, or choose another target": 0, "create it: `mkdir -p " + dir + "/other`": 1} {
		missing := mount(2, "./gone")
		have := diag.List{{Severity: diag.Error, Code: "mount-point-missing", Range: missing.At.Range, Hint: hint}}
		if d := Absent([]workshop.Mount{missing}, dir, have); len(d) != want {
			t.Errorf("next to %q: %+v, want %d", hint, d, want)
		}
	}
	var lines []int
	for _, d := range Absent(mounts, dir, nil) {
		if d.Severity != diag.Warning || d.Code != "mount-source-missing" || d.Hint == "" {
			t.Errorf("got %+v", d)
		}
		lines = append(lines, d.Range.Start.Line)
	}
	if want := []int{2, 4, 6}; !slices.Equal(lines, want) {
		t.Errorf("warnings of lines %v, want %v", lines, want)
	}
}

package workshop

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/diagtext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testEnv is the environment of all cases.
var testEnv = map[string]string{
	"SET": "set", "SET_UID": "1001", "EMPTY": "", "COLON": "./a:/b", "CONTROL": "a\x1b[2Jb",
}

func testOptions() Options {
	return Options{
		Home:   "/home/me",
		Lookup: func(name string) (string, bool) { v, ok := testEnv[name]; return v, ok },
	}
}

const testWorker = "---\nname: %\nallowed-tools: Read\n---\nWork.\n"

// singleFile is a project of one workshop.yaml and the workers that the cases
// use.
func singleFile(data []byte) fs.FS {
	out := fstest.MapFS{"workshop.yaml": {Data: data}}
	for _, name := range []string{"worker", "other", "second", "code-reviewer", "security-scanner"} {
		out["workers/"+name+".md"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(testWorker, "%", name))}
	}
	return out
}

// testCases returns the projects below testdata/kind by name: NAME.yaml or
// the directory NAME.
func testCases(t testing.TB, kind string) map[string]fs.FS {
	t.Helper()
	root := filepath.Join("testdata", kind)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fs.FS{}
	for _, e := range entries {
		name, isYAML := strings.CutSuffix(e.Name(), ".yaml")
		switch {
		case e.IsDir():
			out[e.Name()] = os.DirFS(filepath.Join(root, e.Name()))
		case isYAML:
			data, err := os.ReadFile(filepath.Join(root, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[name] = singleFile(data)
		}
	}
	return out
}

func text(t testing.TB, fsys fs.FS, l diag.List) string {
	t.Helper()
	var b bytes.Buffer
	if err := diagtext.Text(&b, l, diagtext.TextOptions{Sources: Sources(fsys, l)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

// Each invalid case is refused, says so at a place, and never takes long (B60).
func TestInvalid(t *testing.T) {
	for name, fsys := range testCases(t, "invalid") {
		t.Run(name, func(t *testing.T) {
			w, l := Load(t.Context(), fsys, "workshop.yaml", testOptions())
			if w != nil || !l.HasErrors() {
				t.Errorf("loaded, want errors; diagnostics:\n%s", text(t, fsys, l))
			}
			checkList(t, l)
			golden(t, filepath.Join("testdata", "invalid", name+".golden"), text(t, fsys, l))
		})
	}
}

// checkList holds for the diagnostics of every load.
func checkList(t testing.TB, l diag.List) {
	t.Helper()
	for _, d := range l {
		if d.Range.Filename == "" || d.Code == "" || d.Summary == "" || d.Severity == 0 {
			t.Errorf("incomplete diagnostic %+v", d)
		}
	}
	sorted := l.Sorted()
	if l.Count(diag.Error) > 0 && l[len(l)-1].Code == "too-many-problems" {
		return
	}
	if !slices.EqualFunc(l, sorted, func(a, b diag.Diagnostic) bool { return a.Range == b.Range && a.Code == b.Code }) {
		t.Error("diagnostics are not in order of position")
	}
}

// No golden file is left behind by a case that is gone.
func TestGoldenFilesHaveCases(t *testing.T) {
	for _, kind := range []string{"invalid", "valid"} {
		cases := testCases(t, kind)
		files, err := filepath.Glob("testdata/" + kind + "/*.golden")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if cases[strings.TrimSuffix(filepath.Base(f), ".golden")] == nil {
				t.Errorf("%s has no case", f)
			}
		}
	}
}

// Each valid case loads, with the warnings of its golden file, without one with
// none.
func TestValid(t *testing.T) {
	for name, fsys := range testCases(t, "valid") {
		t.Run(name, func(t *testing.T) {
			w, l := Load(t.Context(), fsys, "workshop.yaml", testOptions())
			if w == nil || l.HasErrors() {
				t.Fatalf("want no errors, got:\n%s", text(t, fsys, l))
			}
			checkList(t, l)
			file := filepath.Join("testdata", "valid", name+".golden")
			if _, err := os.Stat(file); err == nil || len(l) > 0 {
				golden(t, file, text(t, fsys, l))
			}
		})
	}
}

// Inputs that are too big for a file of the repository (B60).
func TestBigInput(t *testing.T) {
	long := func(s string, n int) []byte { return []byte(strings.Repeat(s, n)) }
	tests := []struct {
		name string
		data []byte
		code string
	}{
		{"10 MB of YAML", long("- abc: def\n", 1<<20), "too-large"},
		{"a million brackets", long("[", 1_000_000), "too-large"},
		{"a million braces", append([]byte("workshop: "), long("{a: ", 200_000)...), "too-large"},
		{"block nesting", long("- ", 400_000), "too-large"},
		{"many values", append([]byte("workshop: ["), append(long("a,", 300_000), ']')...), "too-large"},
		{"many keys", append([]byte("workshop:\n"), long("  a: b\n", 40_000)...), "duplicate-key"},
		{"long key", append(long("k", 900_000), []byte(": x\n")...), "unknown-key"},
		{"long value", append([]byte("workshop:\n  name: "), long("n", 900_000)...), "too-large"},
		{"question marks", long("? ", 400_000), "too-large"},
		{"quotes", append([]byte("workshop: \""), long("\\n", 400_000)...), "not-yaml"},
		{"dollars", append([]byte("workshop:\n  description: "), long("$$", 30_000)...), "missing-key"},
		{"variables", append([]byte("workshop:\n  description: "), long("${SET}", 10_000)...), "missing-key"},
		{"many problems", append([]byte("workshop:\n"), []byte(func() (s string) {
			for i := range 300 {
				s += fmt.Sprintf("  key%d: x\n", i)
			}
			return s
		}())...), "too-many-problems"},
		{"open variables", append([]byte("workshop:\n  description: "), long("${SET:-", 9_000)...), "bad-variable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begin := testutil.Now()
			w, l := Load(t.Context(), singleFile(tt.data), "workshop.yaml", testOptions())
			if d := testutil.Since(begin); d > 5*time.Second {
				t.Errorf("took %s", d)
			}
			if w != nil || !slices.ContainsFunc(l, func(d diag.Diagnostic) bool { return d.Code == tt.code }) {
				t.Errorf("want %s, got %.500s", tt.code, l.Error())
			}
			checkList(t, l)
		})
	}
}

package promise

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryPromiseHasARow: a promise without a row would be shown as not known.
func TestEveryPromiseHasARow(t *testing.T) {
	for _, p := range All() {
		for _, e := range Kinds() {
			k := Of(e, p.ID)
			if k.How == "" || k.How == "not known" {
				t.Errorf("%s on %s: nothing says how it is kept", p.ID, e)
			}
			if e != Process && !k.Held {
				t.Errorf("%s is not held on %s: only process mode waives promises", p.ID, e)
			}
		}
	}
	for _, id := range slices.Concat(slices.Collect(maps.Keys(onGVisor)), slices.Collect(maps.Keys(inVM))) {
		if !slices.ContainsFunc(promises, func(p Promise) bool { return p.ID == id }) {
			t.Errorf("there is no promise %s", id)
		}
	}
	if len(rows) != len(promises) {
		t.Errorf("%d rows for %d promises", len(rows), len(promises))
	}
}

// TestProcessWaives: boundary.md: process mode waives B1–B36, no more and no less.
func TestProcessWaives(t *testing.T) {
	var want []string
	for _, p := range All() {
		if p.Area == Container || p.Area == Network {
			want = append(want, p.ID)
		}
	}
	if got := Waived(Process); !slices.Equal(got, want) {
		t.Errorf("process mode waives %v, want %v", got, want)
	}
}

// TestNamesOfTests: a number in the name of a scenario is a promise.
func TestNamesOfTests(t *testing.T) {
	entries, err := os.ReadDir("../../e2e")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`func TestB(\d+)_`)
	seen := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		b, err := os.ReadFile("../../e2e/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllSubmatch(b, -1) {
			seen++
			id := "B" + strings.TrimLeft(string(m[1]), "0")
			if !slices.ContainsFunc(promises, func(p Promise) bool { return p.ID == id }) {
				t.Errorf("%s: there is no promise B%s", e.Name(), m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no scenario was found")
	}
}

// TestDocuments: they are what `make generate` writes.
func TestDocuments(t *testing.T) {
	for name, document := range map[string]func(string) (string, error){"security.md": Document, "engines.md": EnginesDocument} {
		old, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := document(string(old))
		if err != nil {
			t.Fatal(err)
		}
		if text != string(old) {
			t.Errorf("docs/%s is not up to date: run make generate", name)
		}
	}
}

func TestRanges(t *testing.T) {
	for want, ids := range map[string][]string{
		"":                {},
		"B5":              {"B5"},
		"B24, B25":        {"B24", "B25"},
		"B5, B24–B26":     {"B5", "B24", "B25", "B26"},
		"B12–B20, B60":    {"B12", "B13", "B20", "B60"},
		"B1–B36":          Waived(Process),
		"nothing, B1, B2": {"nothing", "B1", "B2"},
	} {
		if got := Ranges(ids); got != want {
			t.Errorf("%v: %q, want %q", ids, got, want)
		}
	}
}

// TestExplanations: each promise is explained, and the tests that an explanation
// names exist.
func TestExplanations(t *testing.T) {
	for _, p := range All() {
		e := Explain(p.ID)
		if e.Meaning == "" || e.Example == "" || len(e.Tests) == 0 {
			t.Errorf("%s: the meaning, the example or the tests are missing", p.ID)
		}
		for _, at := range Tests(p.ID) {
			dir, name, _ := strings.Cut(at, ": ")
			if !hasTest(t, "../../"+dir, strings.TrimSuffix(name, "*")) {
				t.Errorf("%s: %s has no test %s", p.ID, dir, name)
			}
		}
	}
	if len(explanations) != len(promises) {
		t.Errorf("%d explanations of %d promises", len(explanations), len(promises))
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "func "+name)
	})
}

// TestDifferently: engines.md: on a kernel of its own these are held, and differently.
func TestDifferently(t *testing.T) {
	want := []string{"filters of calls (B2)", "limits of processes (B5)", "the end of PID 1 (B12)", "its own network (B22)", "denials that nobody is told (B28)"}
	if got := Differently(GVisor); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = []string{"limits of processes (B5)", "the device beside the machine (B6)", "denials that nobody is told (B28)"}
	if got := Differently(VM); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, e := range Engines() {
		if k := Of(e, "B28"); k.Differently != "" || len(k.Tests) > 0 {
			t.Errorf("%s: %+v", e, k)
		}
	}
	if got := Of(GVisor, "B28").Text(); !strings.HasPrefix(got, "held differently: ports that no line names are refused inside; ") {
		t.Error(got)
	}
}

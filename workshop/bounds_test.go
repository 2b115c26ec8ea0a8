package workshop

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestWorkIsBounded: B60: a small file makes no large work, in time or memory.
func TestWorkIsBounded(t *testing.T) {
	const head = "workshop:\n  name: test\n  container:\n    image: i:1\n"
	const tail = "  workers: [worker]\n"
	doubling := &strings.Builder{}
	for i := range 24 { // 16 MiB, if it were done
		fmt.Fprintf(doubling, "A%d=$A%d$A%d\n", i+1, i, i)
	}
	for _, c := range []struct{ name, text, env, want string }{
		{"variables that double", head + tail, "A0=x\n" + doubling.String(), "more than 65536 bytes"},
		{"variables that double within a line", head + tail, "A0=\"x\" " + strings.ReplaceAll(strings.ReplaceAll(doubling.String(), "\n", "\" "), "=$", "=\"$"), "more than 65536 bytes"},
		{"many references in a line", head + tail, "A=" + strings.Repeat("${B:-x}", 3000) + "\n", "too many variables"},
		{"nested defaults", head + tail, "A=" + strings.Repeat("${B:-", 3000) + strings.Repeat("}", 3000) + "\n", "too many variables"},
		{"many values", head + tail, "B=" + strings.Repeat("x", 60_000) + "\n" + strings.Repeat("A=$B\n", 30_000), "too many variables"},
		{"nested defaults in workshop.yaml", head + "    env: {A: \"" + strings.Repeat("${B:-", 5000) + strings.Repeat("}", 5000) + "\"}\n" + tail, "", "has a `$`"},
		{"alternatives", head + "    mounts:\n      - {source: ., target: /w, exclude: [\"" + strings.Repeat("{a,b}", 45) + "\"]}\n" + tail, "", "alternatives"},
		{"nested alternatives", head + "    mounts:\n      - {source: ., target: /w, exclude: [\"" + strings.Repeat("{a,", 45) + strings.Repeat("}", 45) + "\"]}\n" + tail, "", "alternatives"},
		{"mounts of many workers", head + "    mounts: [" + numbered("./m%d:/m%d", 900) + "]\n" + "  workers: [" + numbered("{name: w%d, file: workers/worker.md}", 900) + "]\n", "", "810000 mounts"},
		{"variables of many workers", head + "    env: {" + numbered("A%d: x", 2000) + "}\n" + "  workers: [" + numbered("{name: w%d, file: workers/worker.md}", 900) + "]\n", "", "1800000 mounts"},
		{"a long pattern", head + "    mounts:\n      - {source: ., target: /w, exclude: [\"" + strings.Repeat("**/", 1000) + "x\"]}\n" + tail, "", "bytes"},
		{"many patterns", head + "    mounts:\n      - {source: ., target: /w, exclude: [" + strings.Repeat("a,", 9000) + "]}\n" + tail, "", "patterns"},
		{"alternatives of a rule", head + "  approvals:\n    rules: [{tool: read_file, match: \"" + strings.Repeat("{"+strings.Repeat("a*,", 300)+"}", 4) + "\", approval: auto}]\n" + tail, "", "alternatives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"workshop.yaml":     {Data: []byte(c.text)},
				"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
			}
			if c.env != "" {
				fsys[".env"] = &fstest.MapFile{Data: []byte(c.env)}
			}
			begin := time.Now()
			_, list := Load(t.Context(), fsys, "workshop.yaml", testOptions())
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("took %v", d)
			}
			if !strings.Contains(list.Error()+fmt.Sprint(list), c.want) {
				t.Errorf("got %.500v, want %s", list, c.want)
			}
		})
	}
}

// TestLongWays: links that lead over many parts cost no more than those that don't.
func TestLongWays(t *testing.T) {
	dir := t.TempDir()
	for i := range maxLinks {
		to := fmt.Sprintf("l%d", i+1)
		if err := os.Symlink(to+strings.Repeat("/x", (500-len(to))/2), filepath.Join(dir, fmt.Sprintf("l%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("l%d", maxLinks)), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	began := testutil.Now()
	if end := followLinks(root.FS(), dir, "l0"); !end.loop {
		t.Errorf("it leads to %.80v…", end)
	}
	if took := testutil.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestErrorsAreNotHiddenByWarnings: what is not shown is only counted, but an
// error comes before a warning.
func TestErrorsAreNotHiddenByWarnings(t *testing.T) {
	p := &problems{}
	for range 3 * maxProblems {
		p.add(diag.Diagnostic{Severity: diag.Warning, Code: "w"})
	}
	if list := p.done("f"); list.HasErrors() || len(list) != maxProblems+1 {
		t.Errorf("got %d, errors %v; want %d warnings", len(list), list.HasErrors(), maxProblems+1)
	}
	p.add(diag.Diagnostic{Severity: diag.Error, Code: "e"})
	if list := p.done("f"); !slices.ContainsFunc(list, func(d diag.Diagnostic) bool { return d.Code == "e" }) {
		t.Errorf("the error isn't shown: %v", list)
	}
}

// numbered joins n copies of a text with their numbers.
func numbered(text string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(all, ", ")
}

// TestWorkerFilesAreBounded: B60: a thousand workers don't each make the largest
// file be read.
func TestWorkerFilesAreBounded(t *testing.T) {
	_, list := Load(t.Context(), fstest.MapFS{
		"workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n  workers: [" + numbered("{name: w%d, file: workers/worker.md}", 1000) + "]\n")},
		"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\n" + strings.Repeat("x", 200<<10))},
	}, "workshop.yaml", testOptions())
	if len(list) != 1 || !strings.Contains(list[0].Summary, "more than 16777216 bytes together") || list[0].Range.Start.Line != 5 {
		t.Error(list)
	}
}

// TestWordsAreCounted: B60: a line that isn't covered is compared with all of the
// workshop's again, to tell of the nearest one. That counts too.
func TestWordsAreCounted(t *testing.T) {
	var outer, inner Network
	outer.Mode.V, inner.Mode.V = firewall.Restricted, firewall.Restricted
	line := func(format string, i int) firewall.Rule {
		host, err := firewall.ParseHostPattern(fmt.Sprintf(format, i))
		if err != nil {
			t.Fatal(err)
		}
		return firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts()}
	}
	for i := range 100 {
		outer.Allow = append(outer.Allow, line("**.h%d.example.org", i))
		inner.Allow = append(inner.Allow, line("**.g%d.example.org", i))
	}
	work := &effort{left: 10*3*100 + 50}
	if out := networkExcess(inner, outer, work); len(out) > 10 || work.left >= 0 {
		t.Errorf("%d lines told, %d left", len(out), work.left)
	}
}

// TestInterrupted: B60: a load ends with its context: while it compares, and
// between the files of workers.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	files := counting{fstest.MapFS{
		"workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n  workers: [" + numbered("{name: w%d, file: workers/worker.md}", 1000) + "]\n")},
		"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
	}, func() {
		if reads++; reads == 10 {
			cancel()
		}
	}}
	w, list := Load(ctx, files, "workshop.yaml", testOptions())
	if w != nil || len(list) != 1 || list[0].Code != "interrupted" || reads > 20 {
		t.Errorf("%v after %d files", list, reads)
	}
	work := &effort{ctx: ctx, left: maxEffort}
	spent := 0
	for work.spend(1) {
		spent++
	}
	if spent > 1<<17 {
		t.Errorf("%d comparisons after the end", spent)
	}
}

// counting calls read for each file that is opened.
type counting struct {
	fstest.MapFS
	read func()
}

func (c counting) Open(name string) (fs.File, error) {
	c.read()
	return c.MapFS.Open(name)
}

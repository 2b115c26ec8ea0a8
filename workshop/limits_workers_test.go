package workshop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B60: made-up workshops that are as hard to check as the limits allow are
// answered in seconds.
func TestHardWorkers(t *testing.T) {
	const workers = 200 // of maxWorkers: the race detector has to get through too
	rules := func(prefix string, n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("%s%d.example.org", prefix, i)
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	names := func(from, n int) string {
		out := []string{}
		for i := from; i < from+n && i < workers; i++ {
			out = append(out, fmt.Sprint("w", i))
		}
		return strings.Join(out, ", ")
	}
	for _, tt := range []struct {
		name   string
		outer  string
		worker func(i int) string
		file   func(i int) string
		code   string
	}{
		{
			"everyone delegates to a hundred others", "restricted",
			func(i int) string {
				return fmt.Sprintf("{network: {mode: restricted, allow: %s}}", rules(fmt.Sprint("a", i), 20))
			},
			func(i int) string { return "delegates-to: [" + names(i+1, 100) + "]" }, "widening",
		},
		{
			"delegates that nobody knows", "none", func(int) string { return "{}" },
			func(i int) string {
				return "delegates-to: [" + strings.ReplaceAll(names(0, 100), "w", fmt.Sprint("unknown", i)) + "]"
			}, "delegate-unknown",
		},
		{
			"long lists against each other", "{mode: restricted, allow: " + rules("a", 9000) + "}",
			func(int) string { return "{network: {allow: " + rules("a", 60) + "}}" },
			func(int) string { return "" }, "too-large",
		},
		{
			"a deny of each worker's own", "{mode: restricted, deny: " + rules("a", 9000) + "}",
			func(i int) string { return fmt.Sprintf("{network: {deny: [b%d.example.org]}}", i) },
			func(int) string { return "" }, "too-large",
		},
		{
			"tools that nobody knows", "none", func(int) string { return "{}" },
			func(int) string { return "disallowed-tools: [" + strings.Repeat("Reed(x), ", 490) + "]" }, "too-many-problems",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "workers"), 0o755); err != nil {
				t.Fatal(err)
			}
			var yaml strings.Builder
			fmt.Fprintf(&yaml, "workshop:\n  name: w\n  container: {image: \"i:1\", network: %s}\n  workers:\n", tt.outer)
			for i := range workers {
				fmt.Fprintf(&yaml, "    - {name: w%d, container: %s}\n", i, tt.worker(i))
				data := "---\nallowed-tools: []\n" + tt.file(i) + "\n---\nDo.\n"
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("workers/w%d.md", i)), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "workshop.yaml"), []byte(yaml.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			begin := testutil.Now()
			_, diags := Load(t.Context(), os.DirFS(dir), "workshop.yaml", Options{})
			t.Logf("%d bytes, %d diagnostics, %s", yaml.Len(), len(diags), testutil.Since(begin))
			if d := testutil.Since(begin); d > 30*time.Second {
				t.Errorf("took %s", d)
			}
			if len(diags) > 3*maxProblems {
				t.Errorf("%d diagnostics", len(diags))
			}
			codes := map[string]int{}
			for _, d := range diags {
				codes[d.Code]++
			}
			if codes[tt.code] == 0 {
				t.Errorf("codes %v, want %q", codes, tt.code)
			}
		})
	}
}

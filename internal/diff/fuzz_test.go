package diff

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/internal/diagtext"
)

// Any two files: no panic, no hang, nothing that drives a terminal, and none differs
// from itself.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(baseFile), []byte(baseFile), []byte(baseWorker), []byte("run: workshop diff\n"))
	for _, tt := range widenings {
		head := edit(f, files(), tt.pairs)
		f.Add([]byte(baseFile), head["workshop.yaml"].Data, head["workers/a.md"].Data, []byte("* @all\n/workshop.yaml @\x1b[2J\n"))
	}
	f.Fuzz(func(t *testing.T, base, head, worker, gate []byte) {
		begin := time.Now()
		tree := func(file []byte) fstest.MapFS {
			return fstest.MapFS{"workshop.yaml": {Data: file}, "workers/a.md": {Data: worker}, "workshop.lock": {Data: gate}, "CODEOWNERS": {Data: gate}, ".github/workflows/x.yml": {Data: gate}, ".env": {Data: gate}}
		}
		a, problems := Read(t.Context(), tree(base), "workshop.yaml", "", nil)
		b, more := Read(t.Context(), tree(head), "workshop.yaml", "", nil)
		if problems.HasErrors() || more.HasErrors() {
			return
		}
		rows, err := Compare(t.Context(), a, b)
		if err == nil {
			for i := range rows {
				for _, text := range []string{rows[i].Summary(), rows[i].Places()} {
					if text != diagtext.Printable(text) {
						t.Errorf("%q is not printable", text)
					}
				}
			}
		}
		_ = Markdown(rows)
		again, _ := Read(t.Context(), tree(base), "workshop.yaml", "", nil)
		if rows, err := Compare(t.Context(), a, again); err == nil && len(rows) > 0 {
			t.Errorf("a file differs from itself:\n%s", texts(rows))
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Fatalf("took %s", d)
		}
	})
}

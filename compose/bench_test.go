package compose

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// manyWorkers is a repository with n workers.
func manyWorkers(n int) fstest.MapFS {
	files := fstest.MapFS{}
	var b strings.Builder
	b.WriteString(`workshop:
  name: many
  container:
    image: llm-do-worker:latest
    network: {mode: restricted, allow: [api.example.org]}
    mounts: [./src:/workspace/src:ro, ./output:/workspace/output:rw]
    resources: {memory: 2G, cpu: 1}
  workers:
`)
	for i := range n {
		fmt.Fprintf(&b, "    - worker-%d\n", i)
		files[fmt.Sprintf("workers/worker-%d.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "---\nname: worker-%d\ndescription: d\nallowed-tools: Read\n---\nWork.\n", i)}
	}
	files["workshop.yaml"] = &fstest.MapFile{Data: []byte(b.String())}
	return files
}

func mustLoad(tb testing.TB, files fstest.MapFS) *workshop.Workshop {
	tb.Helper()
	w, list := workshop.Load(tb.Context(), files, "workshop.yaml", workshop.Options{})
	if list.HasErrors() {
		tb.Fatal(list)
	}
	return w
}

// The rows of speed.md: ours (all of load, compile and render, and the compile
// and render alone) next to compose-go's loader on what they wrote.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		files := manyWorkers(n)
		b.Run(fmt.Sprintf("load+compile+render/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(compiled(b, mustLoad(b, files))); err != nil {
					b.Fatal(err)
				}
			}
		})
		w := mustLoad(b, files)
		b.Run(fmt.Sprintf("compile+render/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Render(compiled(b, w)); err != nil {
					b.Fatal(err)
				}
			}
		})
		c := compiled(b, w)
		b.Run(fmt.Sprintf("check/%d", n), func(b *testing.B) {
			for b.Loop() {
				if v := Check(c); len(v) > 0 {
					b.Fatal(v)
				}
			}
		})
		facts := factsFor(w)
		b.Run(fmt.Sprintf("withfacts+check/%d", n), func(b *testing.B) {
			for b.Loop() {
				full, list := WithFacts(c, facts)
				if v := Check(full); len(v) > 0 || len(list) > 0 {
					b.Fatal(v, list)
				}
			}
		})
		data := composeYAML(b, c)
		b.Run(fmt.Sprintf("peer: compose-go loader/%d", n), func(b *testing.B) {
			for b.Loop() {
				_, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
					WorkingDir:  "/x",
					ConfigFiles: []types.ConfigFile{{Filename: ComposeFile, Content: data}},
					Environment: types.Mapping{VarFacts: "f", VarInitImage: "i"},
				}, func(o *loader.Options) { o.SetProjectName("x", true); o.MaxNodeVisits = 100_000_000 })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

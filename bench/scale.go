//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// scale measures text to files, in this process, against compose-go's loader on the
// result.
func (b *bench) scale() error {
	var first float64
	for _, n := range []int{1, 100, 1000} {
		dir, err := b.workers(fmt.Sprintf("bench-scale-%d", n), n)
		if err != nil {
			return err
		}
		var rendered []byte
		ours := func() (time.Duration, error) {
			start := time.Now()
			w, problems := workshop.Load(context.Background(), os.DirFS(dir), "workshop.yaml", workshop.Options{Lookup: func(string) (string, bool) { return "", false }})
			if problems.HasErrors() {
				return 0, problems
			}
			c, err := compose.Compile(w)
			if err != nil {
				return 0, err
			}
			files, err := compose.Render(c)
			for _, f := range files {
				if f.Path == compose.ComposeFile {
					rendered = f.Data
				}
			}
			return time.Since(start), err
		}
		if _, err := ours(); err != nil {
			return err
		}
		lookup := map[string]string{compose.VarFacts: "x", compose.VarInitImage: "x"}
		theirs := func() (time.Duration, error) {
			start := time.Now()
			_, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
				WorkingDir: dir, Environment: lookup,
				ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, compose.ComposeFile), Content: rendered}},
			}, func(o *loader.Options) { o.SetProjectName("bench", true) })
			return time.Since(start), err
		}
		rounds := map[int]int{1: 21, 100: 7, 1000: 3}[n]
		m, err := interleave(rounds, ours, theirs)
		if err != nil {
			return err
		}
		r := row{what: fmt.Sprintf("load, compile, render: %d workers", n), against: "compose-go's loader on the result", ours: m[0], other: m[1], unit: "ms"}
		if n == 1000 {
			r.limit = 0.10
			r.note = fmt.Sprintf("%.4f ms a worker, and %.4f at 100", m[0]/1000, first/100)
		}
		if n == 100 {
			first = m[0]
		}
		b.add(r)
	}
	return nil
}

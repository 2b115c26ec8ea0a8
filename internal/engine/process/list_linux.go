package process

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/llmdo/workshop/internal/engine"
)

// List reads the recorded states.
func (e *Engine) List(context.Context) ([]engine.Listed, error) {
	entries, err := os.ReadDir(e.opts.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []engine.Listed
	for _, d := range entries {
		s, problem := e.read(d.Name())
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		l := engine.Listed{Project: d.Name(), Containers: s.Containers, Memory: -1}
		for _, c := range s.Containers {
			l.Directory = c.Directory
		}
		out = append(out, l)
	}
	return out, err
}

package app

import (
	"context"
	"errors"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/engine"
)

// InvalidError is a workshop file with errors.
type InvalidError struct {
	File        string
	Diagnostics diag.List
}

// Error names the first.
func (e *InvalidError) Error() string {
	text := e.File + " is invalid: " + Count(e.Diagnostics.Count(diag.Error), "error")
	for _, d := range e.Diagnostics {
		if d.Severity == diag.Error {
			return text + "; " + d.Summary
		}
	}
	return text
}

// Open is what `workshop tools` does before it serves, for a program of one's own:
// it returns when the workers are up. The context is for opening alone.
func (env *Env) Open(ctx context.Context, o ToolsOptions) (*Tools, error) {
	c, err := env.quietCompile(ctx)
	if err != nil {
		return nil, err
	}
	h, err := env.OpenTools(context.WithoutCancel(ctx), c, nil, o)
	if err != nil {
		return nil, err
	}
	h.once.Do(func() {
		defer close(h.ready)
		h.err = h.start(ctx)
	})
	if h.err != nil {
		h.Close()
		return nil, h.err
	}
	return h, nil
}

// quietCompile is compile whose problems are in the error.
func (env *Env) quietCompile(ctx context.Context) (*Project, error) {
	env.fetches = true
	s, err := env.readFound(ctx)
	env.fetches = false
	if err != nil {
		return nil, err
	}
	if s.Workshop == nil {
		list, _ := s.Shown()
		return nil, &InvalidError{File: env.Shown(s.Path), Diagnostics: list}
	}
	return env.compileSource(s)
}

// IsNotUp reports whether an error means that the workshop, or a worker of it,
// doesn't run.
func IsNotUp(err error) bool {
	_, stopped := errors.AsType[*engine.NotRunningError](err)
	return stopped || errors.Is(err, ErrNotUp)
}

// Hints are what an error says to do.
func Hints(err error) []string {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.AllHints()
	}
	return nil
}

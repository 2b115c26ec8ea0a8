package app

import (
	"context"
	"errors"
	"sync"

	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/workshop"
)

// Opened is a workshop whose tools a program uses.
type Opened struct {
	tools  *Tools
	asker  approval.Asker
	client string
	mu     sync.Mutex
	hosts  map[string]*session.Host
	closed bool
}

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

// OpenOptions say how [Env.Open] opens a workshop; package client says what its
// fields mean.
type OpenOptions struct {
	Up, Build bool
	Asker     approval.Asker
	Client    string
}

// Open is what `workshop tools` does before it serves, for a program of one's own.
// The context is for opening alone.
func (env *Env) Open(ctx context.Context, o OpenOptions) (*Opened, error) {
	c, err := env.quietCompile(ctx)
	if err != nil {
		return nil, err
	}
	h, err := env.OpenTools(context.WithoutCancel(ctx), c, nil, ToolsOptions{NoUp: !o.Up, Yes: o.Build, Again: "workshop up"})
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
	return &Opened{tools: h, asker: o.Asker, client: o.Client, hosts: map[string]*session.Host{}}, nil
}

// quietCompile is compile whose problems are in the error.
func (env *Env) quietCompile(ctx context.Context) (*Project, error) {
	s, err := env.readFound(ctx)
	if err != nil {
		return nil, err
	}
	if s.Workshop == nil {
		list, _ := s.Shown()
		return nil, &InvalidError{File: env.Shown(s.Path), Diagnostics: list}
	}
	return env.compileSource(s)
}

// Workshop is the file as it was when it was opened.
func (o *Opened) Workshop() *workshop.Workshop { return o.tools.c.Workshop }

// Host gives the tools of one worker; always the same.
func (o *Opened) Host(worker string) (*session.Host, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, session.ErrClosed
	}
	if err := o.tools.c.CheckWorkers([]string{worker}); err != nil {
		return nil, err
	}
	if host := o.hosts[worker]; host != nil {
		return host, nil
	}
	host, err := o.tools.Host(worker, o.client, o.asker, nil)
	if err == nil {
		o.hosts[worker] = host
	}
	return host, err
}

// Close ends all sessions. The workshop stays up.
func (o *Opened) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	var all error
	for _, host := range o.hosts {
		all = errors.Join(all, host.Close())
	}
	o.tools.Close()
	return all
}

// IsNotUp tells whether an error means that the workshop, or a worker of it,
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

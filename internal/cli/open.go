package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/diag"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/workshop"
)

// OpenOptions is what package client opens a workshop with; its Options say
// what they mean.
type OpenOptions struct {
	Dir, File, Project, Engine string
	Up, Build                  bool
	Asker                      approval.Asker
	Client                     string
	Log                        io.Writer // never nil
}

// Opened is a workshop whose tools a program uses.
type Opened struct {
	h      *toolsHost
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
	text := e.File + " is invalid: " + count(e.Diagnostics.Count(diag.Error), "error")
	for _, d := range e.Diagnostics {
		if d.Severity == diag.Error {
			return text + "; " + d.Summary
		}
	}
	return text
}

// Open is what `workshop tools` does before it serves, for a program of one's
// own: it reads this process's environment and the user's settings, and writes
// to nothing but Log. The context is for opening alone.
func Open(ctx context.Context, o OpenOptions) (*Opened, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	a := &program{System: &System{
		Out: o.Log, Err: o.Log, Lookup: os.LookupEnv, Home: homeDir(os.LookupEnv), Engine: engines, Dir: dir,
	}}
	if o.Dir != "" {
		a.Dir = a.abs(o.Dir)
	}
	if a.set, err = a.readSettings(&cobra.Command{}); err != nil {
		return nil, err
	}
	a.set.noColor = true
	if o.Dir != "" || o.File != "" { // what the program says wins over WORKSHOP_FILE
		a.set.file = o.File
	}
	a.set.project = cmp.Or(o.Project, a.set.project)
	a.set.engine = cmp.Or(o.Engine, a.set.engine)
	c, err := a.quietCompile(ctx)
	if err != nil {
		return nil, err
	}
	h, err := a.openCompiled(context.WithoutCancel(ctx), c, nil, toolsOptions{noUp: !o.Up, yes: o.Build}, "workshop up")
	if err != nil {
		return nil, err
	}
	h.once.Do(func() {
		defer close(h.ready)
		h.err = h.start(ctx)
	})
	if h.err != nil {
		h.close()
		return nil, h.err
	}
	return &Opened{h: h, asker: o.Asker, client: o.Client, hosts: map[string]*session.Host{}}, nil
}

// quietCompile is compile whose problems are in the error.
func (a *program) quietCompile(ctx context.Context) (*compiled, error) {
	file, err := a.findFile()
	if err != nil {
		return nil, err
	}
	s, err := a.readSource(ctx, file)
	if err != nil {
		return nil, err
	}
	if s.w == nil {
		list, _ := s.shown()
		return nil, &InvalidError{File: a.shown(filepath.Join(s.dir, s.file)), Diagnostics: list}
	}
	return a.compileSource(s)
}

// Workshop is the file as it was when it was opened.
func (o *Opened) Workshop() *workshop.Workshop { return o.h.c.w }

// Host gives the tools of one worker; always the same.
func (o *Opened) Host(worker string) (*session.Host, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, session.ErrClosed
	}
	if err := o.h.c.workers(nil, []string{worker}); err != nil {
		return nil, err
	}
	if host := o.hosts[worker]; host != nil {
		return host, nil
	}
	host, err := o.h.host(worker, o.client, o.asker, nil)
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
	o.h.close()
	return all
}

// IsNotUp tells whether an error means that the workshop, or a worker of it,
// doesn't run.
func IsNotUp(err error) bool {
	_, stopped := errors.AsType[*engine.NotRunningError](err)
	return stopped || errors.Is(err, errNotUp)
}

// Hints are what an error says to do.
func Hints(err error) []string {
	if f, ok := errors.AsType[*app.Failure](err); ok {
		return f.AllHints()
	}
	return nil
}

package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/llmdo/workshop/internal/engine"
)

// Logs writes the logs of services, of all if none is named: one service after
// the other, or with Follow all at once, line by line.
func (e *Engine) Logs(ctx context.Context, project string, services []string, o engine.LogsOptions) error {
	seen, err := e.Observe(ctx, project)
	if err != nil {
		return err
	}
	var list []engine.Container
	for _, c := range seen.Containers {
		if c.OneOff || c.Helper {
			continue
		}
		if slices.Contains(services, c.Service) || len(services) == 0 {
			list = append(list, c)
		}
	}
	for _, s := range services {
		if !slices.ContainsFunc(list, func(c engine.Container) bool { return c.Service == s }) {
			return &engine.NotRunningError{Project: project, Services: []string{s}}
		}
	}
	if len(list) == 0 {
		return &engine.NotRunningError{Project: project, Services: []string{"workers"}}
	}
	width := 0
	for _, c := range list {
		width = max(width, len(c.Service))
	}
	var mu sync.Mutex
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		prefix := ""
		if o.Prefix {
			prefix = fmt.Sprintf("%-*s | ", width, c.Service)
		}
		one := func() { errs[i] = e.logsOf(ctx, c, o, prefix, &mu) }
		if o.Follow {
			wg.Go(one)
		} else {
			one()
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Engine) logsOf(ctx context.Context, c engine.Container, o engine.LogsOptions, prefix string, mu *sync.Mutex) error {
	info, err := e.cli.ContainerInspect(ctx, c.ID)
	if err != nil {
		return e.explain(err)
	}
	r, err := e.cli.ContainerLogs(ctx, c.ID, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Follow: o.Follow, Timestamps: o.Timestamps, Tail: o.Tail, Since: o.Since,
	})
	if err != nil {
		return fmt.Errorf("logs of %s: %w", c.Service, e.explain(err))
	}
	defer r.Close()
	out := &prefixWriter{w: o.Stdout, prefix: prefix, mu: mu}
	errOut := &prefixWriter{w: o.Stderr, prefix: prefix, mu: mu}
	if info.Config.Tty {
		_, err = io.Copy(out, r)
	} else {
		_, err = stdcopy.StdCopy(out, errOut, r)
	}
	err = errors.Join(err, out.end(), errOut.end())
	if ctx.Err() != nil {
		return nil // that is how following ends
	}
	return err
}

// prefixWriter writes whole lines, each behind the prefix, so that two
// services never share one.
type prefixWriter struct {
	w      io.Writer
	prefix string
	mu     *sync.Mutex
	rest   []byte
}

// maxPending is where an unfinished line is written as it is, in bytes.
const maxPending = 64 << 10

func (p *prefixWriter) Write(b []byte) (int, error) {
	if p.w == nil {
		return len(b), nil
	}
	p.rest = append(p.rest, b...)
	for {
		i := slices.Index(p.rest, '\n')
		switch {
		case i >= 0:
			i++
		case len(p.rest) > maxPending:
			i = len(p.rest)
		default:
			return len(b), nil
		}
		if err := p.flush(p.rest[:i]); err != nil {
			return 0, err
		}
		p.rest = p.rest[i:]
	}
}

func (p *prefixWriter) flush(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(append([]byte(p.prefix), line...))
	return err
}

// end writes an unfinished last line.
func (p *prefixWriter) end() error {
	if len(p.rest) == 0 || p.w == nil {
		return nil
	}
	rest := append(p.rest, '\n')
	p.rest = nil
	return p.flush(rest)
}

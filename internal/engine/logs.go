package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/llmdo/workshop/internal/made"
)

// WriteLogs writes the logs of services, of all if none is named: one service
// after the other, or with Follow concurrently, line by line. one writes the logs of
// one container; its error is ignored once ctx has ended.
func WriteLogs(ctx context.Context, seen Observed, services []string, o LogsOptions, one func(ctx context.Context, c Container, stdout, stderr io.Writer) error) error {
	var list []Container
	for _, c := range seen.Containers {
		if c.OneOff || c.Helper {
			continue
		}
		if slices.Contains(services, c.Service) || len(services) == 0 {
			list = append(list, c)
		}
	}
	for _, s := range services {
		if !slices.ContainsFunc(list, func(c Container) bool { return c.Service == s }) {
			return &NotRunningError{Project: seen.Project, Services: []string{s}}
		}
	}
	if len(list) == 0 {
		return &NotRunningError{Project: seen.Project, Services: []string{"workers"}}
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
		write := func() {
			out, errOut := &prefixWriter{w: o.Stdout, prefix: prefix, mu: &mu, timestamps: o.Timestamps, reports: true}, &prefixWriter{w: o.Stderr, prefix: prefix, mu: &mu}
			err := errors.Join(one(ctx, c, out, errOut), out.end(), errOut.end())
			if ctx.Err() == nil { // ctx ends following
				errs[i] = err
			}
		}
		if o.Follow {
			wg.Go(write)
		} else {
			write()
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// prefixWriter writes whole lines, each after the prefix, so that two services
// never share one.
type prefixWriter struct {
	w      io.Writer
	prefix string
	mu     *sync.Mutex
	rest   []byte
	// reports: lines with what a container says of itself (package made) are left out.
	reports, timestamps bool
}

// maxPending is the size in bytes at which an unfinished line is written.
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
	if p.reports && isReport(line, p.timestamps) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(append([]byte(p.prefix), line...))
	return err
}

// isReport reports whether a line, perhaps after its time, has a report.
func isReport(line []byte, timestamp bool) bool {
	if timestamp {
		_, line, _ = bytes.Cut(line, []byte(" "))
	}
	return bytes.HasPrefix(line, []byte(made.Prefix))
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

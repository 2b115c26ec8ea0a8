package app

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// logPosition is how far a log was read. Reading on from it repeats no line and leaves
// none out, also over restarts of what writes the log. The zero value is the beginning.
//
// An engine's time of a line doesn't identify it: podman gives whole seconds, though it
// keeps nanoseconds, and reads a fraction of a second as a float (podman up to 5.8:
// pkg/api/handlers/compat/containers_logs.go, pkg/util/utils.go). So reading on begins
// before the second of the last line, and skips the lines of that second that were read.
type logPosition struct {
	second time.Time      // of the last line
	seen   map[string]int // the lines of that second, and how often each was read
	lines  int            // read so far

	again   map[string]int // of seen, those that aren't read again yet
	resumed bool           // since then no line was new
}

// resume prepares for reading on, and returns from where: a time before all lines that
// weren't read. It is zero at the beginning of a log.
func (p *logPosition) resume() time.Time {
	p.again, p.resumed = maps.Clone(p.seen), true
	if p.second.IsZero() {
		return time.Time{}
	}
	return p.second.Add(-time.Second)
}

// add takes a line, which begins with the engine's time t, and reports whether it is new.
func (p *logPosition) add(t time.Time, line string) bool {
	if p.again[line] > 0 {
		p.again[line]--
		return false
	}
	second := t.Truncate(time.Second)
	// Once a line is new, those after it are: a clock may be set back.
	if p.resumed && second.Before(p.second) {
		return false
	}
	p.resumed = false
	if !second.Equal(p.second) {
		p.second, p.seen = second, map[string]int{}
	}
	p.seen[line]++
	p.lines++
	return true
}

// goneTime is how long a guard that ended may take to come back while it is
// followed: the engine starts it again, or `up` makes a new one.
const goneTime = 10 * time.Second

// Follow reads what is in the log and what comes, each line once, also of a guard that is
// restarted. It returns when the context is done, and fails when the guard has ended.
func (g *GuardLog) Follow(ctx context.Context, r *Running) error {
	begin, err := since(g.Since, time.Now())
	if err != nil {
		return err
	}
	p := &logPosition{}
	if g.Tail >= 0 {
		if err := g.read(ctx, r, engine.LogsOptions{Since: logTime(begin)}, p); err != nil {
			return err
		}
	}
	var ended time.Time
	for ctx.Err() == nil {
		from, before := p.resume(), p.lines
		if from.Before(begin) {
			from = begin
		}
		if err := g.read(ctx, r, engine.LogsOptions{Follow: true, Since: logTime(from)}, p); err != nil && ended.IsZero() {
			return err
		}
		switch {
		case p.lines != before || ended.IsZero():
			ended = time.Now()
		case time.Since(ended) > goneTime:
			return fmt.Errorf("the guard of %s has ended", r.Name)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// since parses [GuardLog.Since]; zero: no limit.
func since(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	return time.Parse(time.RFC3339, text)
}

// logTime is a time of [engine.LogsOptions].
func logTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

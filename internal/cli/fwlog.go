package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// fwLogOptions are the flags of firewall log.
type fwLogOptions struct {
	follow, denied bool
	worker, since  string
	tail           int
}

func (a *program) firewallLogCommand() *cobra.Command {
	var o fwLogOptions
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what the guard let through and refused",
		Long: `log shows the events of the guard: what workers were refused, why, and the
command that allows it, and which connections were let through. With -v it shows
also when they ended, and what they carried.

In a pipe, and with --format json, it prints the guard's own lines unchanged: one
JSON object each. The log is bounded: the engine throws the oldest lines away,
and with a new guard it begins anew.

-f is --follow here, as in logs; the workshop file is --file, or -f before the
command.`,
		Example: `  workshop firewall log -f --denied
  workshop firewall log --worker greeter --since 10m
  workshop firewall log | jq -r 'select(.verdict == "deny").name'`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.firewallLog(ctx, cmd, o)
		}),
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until interrupted")
	cmd.Flags().BoolVar(&o.denied, "denied", false, "only what was refused")
	cmd.Flags().StringVar(&o.worker, "worker", "", "only events of this worker's room")
	cmd.Flags().StringVar(&o.since, "since", "", "only what is newer: a time (RFC 3339) or a duration like 10m")
	cmd.Flags().IntVarP(&o.tail, "tail", "n", -1, "number of events from the end (default all)")
	a.completeWorkerFlag(cmd)
	return cmd
}

// completeWorkerFlag completes --worker.
func (a *program) completeWorkerFlag(cmd *cobra.Command) {
	// The only error is a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc("worker", a.completeWorkers(0))
}

func (a *program) firewallLog(ctx context.Context, cmd *cobra.Command, o fwLogOptions) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	if !slices.Contains(formats[verbName(cmd)], a.set.format) && !isTerminal(a.Out) {
		format = "json"
	}
	if err := checkSince(cmd, o.since); err != nil {
		return err
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, seen, err := a.observeGuard(ctx, t, o.worker)
	if err != nil {
		return err
	}
	defer e.Close()
	l := &eventLog{options: o, ends: true, print: a.rawEvent}
	if format != "json" {
		l.ends, l.print = a.Verbose, a.eventText(seen).print
	}
	if o.follow {
		err = l.follow(ctx, e, t.Name)
	} else {
		err = l.read(ctx, e, t.Name, engine.LogsOptions{Since: o.since}, false)
	}
	if o.follow && ctx.Err() != nil {
		return app.Exit(app.CodeInterrupted)
	}
	if err == nil && l.printed == 0 {
		a.say("the guard of %s has reported nothing%s", t.Name, l.selection())
	}
	return app.EngineError(err)
}

// observeGuard looks at a project that must have a guard, and the worker, if one
// is named. The caller closes the engine.
func (a *program) observeGuard(ctx context.Context, t app.ProjectRef, worker string) (engine.Engine, engine.Observed, error) {
	e, seen, err := a.Observe(ctx, t, a.globals.project != "")
	if err != nil {
		return nil, seen, err
	}
	var names []string
	if worker != "" {
		names = []string{worker}
	}
	err = app.Services(t, seen, names)
	if err == nil && !slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.Service == compose.GuardService }) {
		err = app.Fail(app.CodeFailed, "project %s has no guard: none of its workers has a network", t.Name).
			Hint("`network: {mode: restricted, allow: [HOST]}` in workshop.yaml gives them one")
	}
	if err != nil {
		e.Close()
		return nil, seen, err
	}
	return e, seen, nil
}

func checkSince(cmd *cobra.Command, since string) error {
	if _, err := time.ParseDuration(since); err == nil || since == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, since); err == nil {
		return nil
	}
	return usageError(cmd, "--since %q is neither a duration like 10m nor a time like 2026-01-31T15:04:05Z", since)
}

// eventLog reads the guard's log and prints what is asked for.
type eventLog struct {
	options fwLogOptions
	ends    bool // print the ends of connections too
	print   func(raw []byte, l events.Line) error
	printed int
	last    time.Time // the engine's time of the last line that was read
}

func (g *eventLog) wants(l events.Line) bool {
	return (g.ends || l.Verdict != events.End) && (!g.options.denied || l.Verdict == events.Deny) && (g.options.worker == "" || slices.Contains(l.Workers, g.options.worker))
}

func (g *eventLog) selection() string {
	s := ""
	if g.options.worker != "" {
		s += " of " + g.options.worker
	}
	if g.options.denied {
		s += " that was refused"
	}
	if g.options.since != "" {
		s += " since " + g.options.since
	}
	return s
}

// read prints what is in the log. The tail counts what is printed, not the lines
// of the log.
func (g *eventLog) read(ctx context.Context, e engine.Engine, project string, o engine.LogsOptions, stamped bool) error {
	type kept struct {
		raw  []byte
		line events.Line
	}
	var tail []kept
	n := g.options.tail
	r := &eventReader{stamped: stamped, each: func(raw []byte, l events.Line) error {
		if !g.wants(l) {
			return nil
		}
		if n < 0 || o.Follow {
			g.printed++
			return g.print(raw, l)
		}
		if tail = append(tail, kept{raw, l}); len(tail) > n {
			tail = tail[1:]
		}
		return nil
	}}
	err := readEvents(ctx, e, project, o, r)
	if !r.last.IsZero() {
		g.last = r.last
	}
	for _, k := range tail {
		g.printed++
		if err := g.print(k.raw, k.line); err != nil {
			return err
		}
	}
	return err
}

// goneTime is how long a guard that ended may take to come back while it is
// followed: the engine starts it again, or `up` makes a new one.
const goneTime = 10 * time.Second

// follow prints what is in the log and what comes, also of a guard that was
// started again meanwhile.
func (g *eventLog) follow(ctx context.Context, e engine.Engine, project string) error {
	o := engine.LogsOptions{Since: g.options.since}
	if g.options.tail >= 0 {
		if err := g.read(ctx, e, project, o, true); err != nil {
			return err
		}
	}
	o.Follow = true
	var ended time.Time
	for ctx.Err() == nil {
		if !g.last.IsZero() {
			o.Since = g.last.Add(1).Format(time.RFC3339Nano)
		}
		before := g.last
		if err := g.read(ctx, e, project, o, true); err != nil && ended.IsZero() {
			return err
		}
		switch {
		case g.last != before || ended.IsZero():
			ended = time.Now()
		case time.Since(ended) > goneTime:
			return fmt.Errorf("the guard of %s has ended", project)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// rawEvent prints the guard's own line.
func (a *program) rawEvent(raw []byte, _ events.Line) error {
	_, err := a.Out.Write(raw)
	return err
}

package firewall

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/guard/events"
)

// logOptions are the flags of firewall log.
type logOptions struct {
	follow, denied bool
	worker, since  string
	tail           int
}

func (a verbs) logCommand() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what the guard let through and refused",
		Long: `log shows the events of the guard: what workers were refused, why, and the
command that allows it, and which connections were let through. With -v it shows
also when they ended, and what they carried.

In a pipe, and with --format json, it prints the guard's own lines unchanged: one
JSON object each. The log is bounded: the engine removes the oldest lines,
and a new guard begins a new log.

-f is --follow here, as in logs; the workshop file is --file, or -f before the
command.`,
		Example: `  workshop firewall log -f --denied
  workshop firewall log --worker greeter --since 10m
  workshop firewall log | jq -r 'select(.verdict == "deny").name'`,
		Annotations: command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.log(ctx, cmd, o)
		}),
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until interrupted")
	cmd.Flags().BoolVar(&o.denied, "denied", false, "only what was refused")
	cmd.Flags().StringVar(&o.worker, "worker", "", "only events of this worker's room")
	cmd.Flags().StringVar(&o.since, "since", "", "only what is newer: a time (RFC 3339) or a duration like 10m")
	cmd.Flags().IntVarP(&o.tail, "tail", "n", -1, "number of events from the end")
	cmd.Flags().Lookup("tail").DefValue = "all"
	return cmd
}

func (a verbs) log(ctx context.Context, cmd *cobra.Command, o logOptions) error {
	otherwise := "text"
	if !terminal.Is(a.Out) {
		otherwise = "json"
	}
	format, err := a.FormatOr(cmd, otherwise)
	if err != nil {
		return err
	}
	if err := checkSince(cmd, o.since); err != nil {
		return err
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, seen, err := a.ObserveGuard(ctx, t, o.worker, a.ProjectGiven())
	if err != nil {
		return err
	}
	defer e.Close()
	if text := app.UntoldText(seen, o.worker); text != "" {
		a.Say("%s", text)
	}
	l := &app.GuardLog{Ends: true, Denied: o.denied, Worker: o.worker, Since: o.since, Tail: o.tail, Each: a.rawEvent}
	if format != "json" {
		l.Ends, l.Each = a.Verbose, a.eventText(seen).print
	}
	n := 0
	if o.follow {
		err = l.Follow(ctx, e)
	} else {
		n, err = l.Read(ctx, e)
	}
	if o.follow && ctx.Err() != nil {
		return app.Exit(app.CodeInterrupted)
	}
	if err == nil && n == 0 {
		a.Say("the guard of %s has reported nothing%s", t.Name, o.selection())
	}
	return app.EngineError(err)
}

func checkSince(cmd *cobra.Command, since string) error {
	if _, err := time.ParseDuration(since); err == nil || since == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, since); err == nil {
		return nil
	}
	return command.UsageError(cmd, "--since %q is neither a duration like 10m nor a time like 2026-01-31T15:04:05Z", since)
}

func (o logOptions) selection() string {
	s := ""
	if o.worker != "" {
		s += " of " + o.worker
	}
	if o.denied {
		s += " that was refused"
	}
	if o.since != "" {
		s += " since " + o.since
	}
	return s
}

// rawEvent prints the guard's own line.
func (a verbs) rawEvent(raw []byte, _ events.Line) error {
	_, err := a.Out.Write(raw)
	return err
}

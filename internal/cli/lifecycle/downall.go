package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
)

// downAll removes all workshops that run, after a question.
func (a verbs) downAll(ctx context.Context, cmd *cobra.Command, o app.DownOptions, strict, yes bool) error {
	if a.ProjectGiven() || a.FileGiven() {
		return command.UsageError(cmd, "down: --all is about every workshop, -p and -f about one")
	}
	all, err := a.List(ctx, app.ListOptions{Engine: a.EngineGiven()})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.Say("no workshop runs")
		return nil
	}
	if agreed, err := a.agreeAll(ctx, all, yes); err != nil || !agreed {
		return err
	}
	code := app.CodeOK
	var failed []string
	for _, w := range all {
		a.Say("project %s (%s):", app.Printable(w.Project), a.shownDir(w))
		changed, err := a.DownListed(ctx, w, o)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			f, ok := errors.AsType[*app.Failure](err)
			if !ok {
				f = &app.Failure{Code: app.CodeFailed, Err: err}
			}
			a.PrintFailure(f)
			code, failed = max(code, f.Code), append(failed, app.Printable(w.Project))
		case changed && strict:
			code = max(code, app.CodeRefused)
		}
	}
	if len(failed) > 0 {
		return app.Fail(code, "%d of %s not removed: %s", len(failed), app.Count(len(all), "workshop"), app.WorkersText(failed))
	}
	if code != app.CodeOK {
		return app.Exit(code)
	}
	return nil
}

// agreeAll shows the workshops and asks whether they are to go.
func (a verbs) agreeAll(ctx context.Context, all []app.Workshop, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	ask := a.Asker()
	if ask == nil {
		return false, app.Fail(app.CodeRefused, "%s would be stopped and removed, and nobody is there to agree", app.Count(len(all), "workshop")).
			Hint("look at them with `workshop ls`, then run `workshop down --all --yes`")
	}
	if err := a.lsTable(all, terminal.NewTable(a.Err, a.Columns(a.Err))); err != nil {
		return false, err
	}
	agreed, err := ask(ctx, fmt.Sprintf("stop and remove %s?", app.Count(len(all), "workshop")))
	if err == nil && !agreed {
		a.Say("nothing was removed")
	}
	return agreed, err
}

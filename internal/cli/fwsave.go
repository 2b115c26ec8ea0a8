package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// saveRules writes lines into the workshop file, and gives them to the guard.
func (a *program) saveRules(ctx context.Context, cmd *cobra.Command, rules []firewall.Rule, o changeOptions) error {
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	network := &s.Workshop.Container.Network
	room := roomLines{known: true}
	if o.worker != "" {
		if err := s.CheckWorkers([]string{o.worker}); err != nil {
			return err
		}
		network = &s.Worker(o.worker).Container.Network
	}
	if network.Mode.V == firewall.None {
		if o.worker == "" {
			return app.Fail(app.CodeRefused, "the workshop has no network (mode none)").Hint("%s", app.NetworkHint)
		}
		return noNetwork(o.worker)
	}
	room.Mode, room.allow, room.deny = network.Mode.V, filled(network.Allow), filled(network.Deny)
	rules, err = a.stillNeeded([]roomLines{room}, rules, o, time.Time{})
	if err != nil || len(rules) == 0 {
		return err
	}
	file := s.Path
	before, err := boundedfile.Read(file, workshop.MaxFileSize)
	if err != nil {
		return err
	}
	after, err := a.withLines(s, before, rules, o)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		a.say("%s has that already; nothing changed", a.Shown(file))
		return nil
	}
	if err := a.rewrite(ctx, s, before, after); err != nil {
		return err
	}
	a.sayWho(s.Workshop, o)
	return a.reloadSaved(ctx, cmd, file)
}

// withLines puts the lines into the text of the file. A worker with lists of
// its own gets the line there, and its workshop has to cover it (B40).
func (a *program) withLines(s *app.Source, text []byte, rules []firewall.Rule, o changeOptions) ([]byte, error) {
	base := &s.Workshop.Container.Network
	for _, r := range rules {
		line := edit.Line{Worker: o.worker, Deny: o.deny, Text: ruleLine(r, o.deny), Comment: o.comment}
		where := []edit.Line{line}
		if o.worker != "" {
			whole := line
			whole.Worker = ""
			_, err := edit.Add(text, line)
			covered := o.deny || firewall.CoveredBy(r, filled(base.Allow)) || base.Mode.V == firewall.Open && isPublic(r)
			switch {
			case errors.Is(err, edit.ErrInherits):
				where = []edit.Line{whole}
				a.say("%s has no list of its own: the line goes to the workshop's, for all that go by it", o.worker)
			case !covered:
				where = []edit.Line{whole, line}
				a.say("the line goes to the workshop's list too: a worker may only narrow what its workshop grants (B40)")
			}
		}
		var err error
		if text, err = edit.Add(text, where...); err != nil {
			return nil, a.cantEdit(s, err)
		}
	}
	return text, nil
}

// cantEdit says where the file can't be edited, and what to write by hand.
func (a *program) cantEdit(s *app.Source, err error) *app.Failure {
	file := a.Shown(s.Path)
	by, ok := errors.AsType[*edit.Error](err)
	if !ok {
		return app.Fail(app.CodeFailed, "%s: %w; nothing was written", file, err)
	}
	if by.Line > 0 {
		file = fmt.Sprintf("%s:%d", file, by.Line)
	}
	f := app.Fail(app.CodeFailed, "%s: %s; nothing was written", file, by.Summary)
	if by.Hint != "" {
		f.Hint("%s", by.Hint)
	}
	return f
}

// sayWho names the workers that a line of the workshop doesn't reach.
func (a *program) sayWho(w *workshop.Workshop, o changeOptions) {
	if o.worker != "" || o.deny {
		return
	}
	var own []string
	for i := range w.Workers {
		if n := &w.Workers[i].Container.Network; n.Mode.V != firewall.None && !sameRules(n.Allow, w.Container.Network.Allow) {
			own = append(own, w.Workers[i].Name)
		}
	}
	if len(own) > 0 {
		a.say("not for %s: with a list of its own, a worker goes by that (--worker adds there)", app.WorkersText(own))
	}
}

func sameRules(x, y []firewall.Rule) bool {
	return slices.EqualFunc(x, y, func(a, b firewall.Rule) bool { return a.Line == b.Line && ruleLine(a, false) == ruleLine(b, false) })
}

// rewrite replaces the workshop file, and prints the lines that changed.
func (a *program) rewrite(ctx context.Context, s *app.Source, before, after []byte) error {
	if err := a.ReplaceFile(ctx, s, before, after); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, a.Shown(s.Path))
	for _, line := range app.ChangedLines(before, after) {
		fmt.Fprintln(a.Out, app.Printable(line))
	}
	return nil
}

// reloadSaved gives what was saved to the guard, if the workshop is up.
func (a *program) reloadSaved(ctx context.Context, cmd *cobra.Command, file string) error {
	err := a.reload(ctx, cmd, false)
	f, ok := errors.AsType[*app.Failure](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, app.ErrNotUp):
		a.say("the workshop is not up: the next `workshop up` goes by it")
		return nil
	case ok && f.Err != nil:
		return f.Hint("%s has the line, and what runs doesn't go by it yet", a.Shown(file))
	}
	return err
}

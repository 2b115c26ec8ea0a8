package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	s, err := a.load(ctx)
	if err != nil {
		return err
	}
	network := &s.w.Container.Network
	room := roomLines{known: true}
	if o.worker != "" {
		if err := s.workers(cmd, []string{o.worker}); err != nil {
			return err
		}
		network = &s.worker(o.worker).Container.Network
	}
	if network.Mode.V == firewall.None {
		if o.worker == "" {
			return app.Fail(app.CodeRefused, "the workshop has no network (mode none)").Hint("%s", networkHint)
		}
		return noNetwork(o.worker)
	}
	room.Mode, room.allow, room.deny = network.Mode.V, filled(network.Allow), filled(network.Deny)
	rules, err = a.stillNeeded([]roomLines{room}, rules, o, time.Time{})
	if err != nil || len(rules) == 0 {
		return err
	}
	file := filepath.Join(s.dir, s.file)
	before, err := boundedfile.Read(file, workshop.MaxFileSize)
	if err != nil {
		return err
	}
	after, err := a.withLines(s, before, rules, o)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		a.say("%s has that already; nothing changed", a.shown(file))
		return nil
	}
	if err := a.rewrite(ctx, s, before, after); err != nil {
		return err
	}
	a.sayWho(s.w, o)
	return a.reloadSaved(ctx, cmd, file)
}

// withLines puts the lines into the text of the file. A worker with lists of
// its own gets the line there, and its workshop has to cover it (B40).
func (a *program) withLines(s *source, text []byte, rules []firewall.Rule, o changeOptions) ([]byte, error) {
	base := &s.w.Container.Network
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
func (a *program) cantEdit(s *source, err error) *app.Failure {
	file := a.shown(filepath.Join(s.dir, s.file))
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
		a.say("not for %s: with a list of its own, a worker goes by that (--worker adds there)", workersText(own))
	}
}

func sameRules(x, y []firewall.Rule) bool {
	return slices.EqualFunc(x, y, func(a, b firewall.Rule) bool { return a.Line == b.Line && ruleLine(a, false) == ruleLine(b, false) })
}

// rewrite replaces the workshop file, and prints the lines that changed.
func (a *program) rewrite(ctx context.Context, s *source, before, after []byte) error {
	if err := a.replaceFile(ctx, s, before, after); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, a.shown(filepath.Join(s.dir, s.file)))
	for _, line := range changedLines(before, after) {
		fmt.Fprintln(a.Out, printable(line))
	}
	return nil
}

// replaceFile replaces the workshop file, once what is new in it is known to be
// valid.
func (a *program) replaceFile(ctx context.Context, s *source, before, after []byte) error {
	file := filepath.Join(s.dir, s.file)
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return app.Fail(app.CodeFailed, "%s is a link or no ordinary file, and is not written", a.shown(file)).Hint("add the line by hand")
	}
	// Beside the file that the project has, so that paths mean the same.
	f, err := os.CreateTemp(s.dir, ".new-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing once it is renamed
	_, err = f.Write(after)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), keepOwner(f, info), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := a.checkRewritten(ctx, s, f.Name()); err != nil {
		return err
	}
	// Somebody may have saved it in an editor meanwhile.
	if now, err := boundedfile.Read(file, workshop.MaxFileSize); err != nil || !bytes.Equal(now, before) {
		return app.Fail(app.CodeFailed, "%s was changed meanwhile; nothing was written", a.shown(file)).Hint("run it again")
	}
	return a.replaceWatched(s, f.Name(), file)
}

// replaceWatched renames; the file may be a watched one (B8).
func (a *program) replaceWatched(s *source, from, file string) error {
	rename := func() error { return os.Rename(from, file) }
	project, err := a.projectName(s.w.Name.V, realPath(s.dir))
	if err != nil {
		return err
	}
	r, err := a.record(project)
	if err != nil {
		return err
	}
	return r.Rewrite(filepath.Join(realPath(s.dir), s.file), rename)
}

// checkRewritten loads and compiles the text as the file that it becomes.
func (a *program) checkRewritten(ctx context.Context, s *source, name string) error {
	fresh, err := a.readSource(ctx, name)
	if err != nil {
		return err
	}
	if fresh.w == nil {
		list, texts := fresh.shown()
		shown, wrote := s.shownFile(s.file), fresh.shownFile(fresh.file)
		for i := range list {
			if list[i].Range.Filename == wrote {
				list[i].Range.Filename = shown
			}
		}
		texts[shown] = texts[wrote]
		if err := a.printDiagnostics(list, texts); err != nil {
			return err
		}
		return app.Fail(app.CodeInvalid, "with this line, %s would be invalid; nothing was written", a.shown(filepath.Join(s.dir, s.file)))
	}
	_, err = compileWorkshop(fresh.w)
	return err
}

// reloadSaved gives what was saved to the guard, if the workshop is up.
func (a *program) reloadSaved(ctx context.Context, cmd *cobra.Command, file string) error {
	err := a.reload(ctx, cmd, false)
	f, ok := errors.AsType[*app.Failure](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotUp):
		a.say("the workshop is not up: the next `workshop up` goes by it")
		return nil
	case ok && f.Err != nil:
		return f.Hint("%s has the line, and what runs doesn't go by it yet", a.shown(file))
	}
	return err
}

// changedLines are the lines that differ, with + and -, and their numbers.
func changedLines(before, after []byte) []string {
	x, y := bytes.Split(before, []byte("\n")), bytes.Split(after, []byte("\n"))
	var out []string
	show := func(sign string, n int, line []byte) {
		out = append(out, fmt.Sprintf("%s%4d | %s", sign, n+1, bytes.TrimRight(line, "\r")))
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && bytes.Equal(x[i], y[j]):
			i, j = i+1, j+1
		case i < len(x) && !slices.ContainsFunc(y[j:], func(l []byte) bool { return bytes.Equal(l, x[i]) }):
			show("-", i, x[i])
			i++
		default:
			show("+", j, y[j])
			j++
		}
	}
	return out
}

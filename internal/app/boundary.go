package app

import (
	"context"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/diff"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
)

// MayRun refuses a workshop that the settings of the machine and the user don't let run
// (B47), or that isn't what its lock says (B46).
func (env *Env) MayRun(ctx context.Context, s *Source) error {
	if !s.allowed {
		settings, err := env.SourceSettings()
		if err != nil {
			return err
		}
		for _, said := range settings.Boundaries() {
			if err := env.withinBoundary(ctx, s, said); err != nil {
				return err
			}
		}
		if err := env.sourcesSigned(s, settings); err != nil {
			return err
		}
		s.allowed = true
	}
	return env.CheckLock(ctx, s)
}

// withinBoundary refuses a workshop, with the values of its variables, that grants more
// than a boundary, or where that can't be decided.
func (env *Env) withinBoundary(ctx context.Context, s *Source, said trust.Said) error {
	boundary, err := env.readBoundary(ctx, said)
	if err != nil {
		return err
	}
	rows, err := diff.Within(ctx, diff.Side{Workshop: diff.Filled(boundary)}, diff.Side{Workshop: diff.Filled(s.Workshop)})
	if err != nil {
		return Fail(CodeRefused, "%s can't be compared with the boundary %s: %w", s.Base(), said.Boundary, err)
	}
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		rows[i].At.Filename = s.ShownFile(rows[i].At.Filename)
	}
	return Fail(CodeRefused, "%s grants more than the boundary that %s sets; nothing was started:%s", s.ShownFile(s.Base()), said.File, beyondText(said, rows)).
		Hint("grant less: %s is what a worker may have at most", said.Boundary)
}

// beyondText lists what is beyond a boundary.
func beyondText(said trust.Said, rows []diff.Row) string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		r.Was.Filename = filepath.Join(filepath.Dir(said.Boundary), r.Was.Filename)
		lines[i] = string(r.State) + " " + r.Summary()
		if at := r.Places(); at != "" {
			lines[i] += " [" + at + "]"
		}
	}
	return listed(lines)
}

// rulesWithinBoundaries refuses to open what a boundary doesn't (B47), whatever a workshop
// file says.
func (env *Env) rulesWithinBoundaries(ctx context.Context, rules []firewall.Rule) error {
	settings, err := env.SourceSettings()
	if err != nil {
		return err
	}
	for _, said := range settings.Boundaries() {
		boundary, err := env.readBoundary(ctx, said)
		if err != nil {
			return err
		}
		head, worker := *boundary, workshop.Worker{Name: "(all)", Container: boundary.Container}
		worker.Container.Network.Mode = workshop.Value[firewall.Mode]{V: firewall.Restricted}
		worker.Container.Network.Allow = rules
		head.Workers = []workshop.Worker{worker}
		rows, err := diff.Within(ctx, diff.Side{Workshop: diff.Filled(boundary)}, diff.Side{Workshop: diff.Filled(&head)})
		if err != nil {
			return Fail(CodeRefused, "the rules can't be compared with the boundary %s: %w", said.Boundary, err)
		}
		for i := range rows {
			rows[i].At = diag.Range{} // what is opened has no line
		}
		if len(rows) > 0 {
			return Fail(CodeRefused, "this opens more than the boundary that %s sets; nothing was changed:%s", said.File, beyondText(said, rows)).
				Hint("%s is what a worker may have at most", said.Boundary)
		}
	}
	return nil
}

// readBoundary reads a boundary: no variable of the user's or the project's decides what
// it grants.
func (env *Env) readBoundary(ctx context.Context, said trust.Said) (*workshop.Workshop, error) {
	dir, name := filepath.Split(said.Boundary)
	w, list := workshop.Load(ctx, projectFS{dir: dir, named: map[string]string{name: said.Boundary}}, name, workshop.Options{
		Home: env.Home, Homes: facts.Homes(os.Getuid(), env.Lookup), Root: filepath.ToSlash(filepath.Clean(dir)), FollowFile: true,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, d := range list {
		if d.Severity == diag.Error {
			d.Range.Filename = filepath.Join(dir, d.Range.Filename)
			return nil, Fail(CodeRefused, "the boundary that %s sets can't be read; nothing was started: %w", said.File, d).
				Hint("a boundary is a workshop.yaml whose variables have defaults")
		}
	}
	return w, nil
}

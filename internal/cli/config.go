package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

func (a *program) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the resolved workshop",
		Long: `config prints the workshop with every default filled in, variables resolved,
presets expanded, and the effective container of every worker. The result is a
workshop file itself.

Values of variables stand in it: don't commit it where they are private.`,
		Example: `  workshop config
  workshop config --format json | jq '.workshop.workers[].container.network'`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			s, err := a.Load(ctx)
			if err != nil {
				return err
			}
			a.sayLinks(s)
			resolved := resolve(s.Workshop)
			if format == "json" {
				return a.writeJSON(resolved)
			}
			if err := writeYAML(a.Out, resolved); err != nil {
				return fmt.Errorf("config: %w", err)
			}
			return nil
		}),
	}
}

// sayLinks says which sources of the workshop are symbolic links, and where they lead
// on this machine. A source that isn't there leads nowhere.
func (a *program) sayLinks(s *app.Source) {
	dir, err := filepath.EvalSymlinks(s.Root())
	if err != nil {
		return
	}
	said := map[string]bool{}
	for i := range s.Workshop.Workers {
		for _, m := range s.Workshop.Workers[i].Container.Mounts {
			path := m.Source.V
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && !said[m.Source.V] {
				said[m.Source.V] = true
				a.SayLeads(dir, m.Source.V, real)
			}
		}
	}
}

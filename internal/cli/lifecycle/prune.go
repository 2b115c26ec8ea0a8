package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
)

// Prune is the verb prune.
func Prune(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.PruneOptions
	var yes, dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what no workshop uses",
		Long: `prune removes what nothing uses any more, on every engine of this machine: projects,
caches, port leases and records of directories that are gone; what interrupted commands
and killed runs left; workshop-init of other versions; unpacked images without a name.
With --all it removes also what a workshop that is down would use again: its caches,
images, built images and workshop-init.

It lists all that first and asks, unless --yes is given; --dry-run only lists. What a
running workshop uses stays, and so does what another user has, what isn't a workshop's,
your files and the audit of calls.`,
		Example: `  workshop prune --dry-run
  workshop prune --all --yes`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if a.ProjectGiven() || a.FileGiven() {
				return command.UsageError(cmd, "prune: it is about every workshop, -p and -f about one; `workshop down --volumes` removes one with its caches")
			}
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			list, err := a.FindUnused(ctx, o)
			if err != nil {
				return err
			}
			return a.prune(ctx, format, list, yes, dry)
		}),
	}
	cmd.Flags().BoolVarP(&o.All, "all", "a", false, "also what a workshop that is down would use again")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be removed, and remove nothing")
	return cmd
}

func (a verbs) prune(ctx context.Context, format string, list []app.Unused, yes, dry bool) error {
	ask := a.Asker()
	switch {
	case format == "json":
		if list == nil {
			list = []app.Unused{}
		}
		if err := a.WriteJSON(list); err != nil {
			return err
		}
	case len(list) > 0 && (!a.Quiet || dry):
		if err := a.pruneTable(list, a.Table()); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		a.Say("nothing to remove")
		return nil
	}
	if dry {
		return nil
	}
	if !yes {
		if ask == nil {
			return app.Fail(app.CodeRefused, "%s would be removed, and nobody is there to agree", app.Count(len(list), "object")).
				Hint("look at the list, then run `workshop prune --yes`")
		}
		agreed, err := ask(ctx, fmt.Sprintf("remove %s?", app.Count(len(list), "object")))
		if err != nil {
			return err
		}
		if !agreed {
			a.Say("nothing was removed")
			return nil
		}
	}
	r := a.Env.Prune(ctx, list)
	code := app.CodeOK
	for _, err := range r.Failed {
		f, _ := errors.AsType[*app.Failure](err)
		if f == nil {
			f = &app.Failure{Code: app.CodeFailed, Err: err}
		}
		a.PrintFailure(f)
		code = max(code, f.Code)
	}
	a.Say("removed %d of %s, freed %s", r.Removed, app.Count(len(list), "object"), bytesText(r.Bytes))
	if code != app.CodeOK {
		return app.Exit(code)
	}
	return nil
}

func (a verbs) pruneTable(list []app.Unused, w *terminal.Table) error {
	fmt.Fprintln(w, "KIND\tNAME\tENGINE\tSIZE\tWHY")
	total := int64(0)
	for _, u := range list {
		size := "unknown"
		if u.Bytes >= 0 {
			total += u.Bytes
			size = bytesText(u.Bytes)
		}
		fmt.Fprintln(w, strings.Join([]string{u.Kind, app.Printable(a.withHome(u.Name)), cmp.Or(u.Engine, " "), size, u.Why}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%s, %s\n", app.Count(len(list), "object"), bytesText(total))
	return err
}

// withHome writes the user's home directory in a text as ~.
func (a verbs) withHome(text string) string {
	if a.Home == "" || a.Home == "/" {
		return text
	}
	return strings.ReplaceAll(text, " "+a.Home+"/", " ~/")
}

// bytesText is "5.8MiB".
func bytesText(n int64) string {
	return units.CustomSize("%.3g%s", float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
}

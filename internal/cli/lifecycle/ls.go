package lifecycle

import (
	"context"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Ls is the verb ls.
func Ls(p *command.Program) *cobra.Command {
	a := verbs{p}
	all := false
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the workshops that run on this machine",
		Long: `ls lists your workshops that run on this machine, on every engine: since when, the
memory that they use, what they may reach by their last ` + "`up`" + `, and their directory. It
needs no workshop.yaml. An engine that doesn't answer is named, and the others are
listed. With --all it lists also those that are down and have kept something: changes of
watched files that nobody accepted, port leases, caches, volumes. ` + "`prune`" + ` removes what
nothing uses. With --quiet it prints the project names alone.`,
		Example: `  workshop ls
  workshop ls --all --format json
  workshop -p NAME down              # NAME as ls prints it`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			list, err := a.List(ctx, app.ListOptions{All: all, Engine: a.EngineGiven()})
			if err != nil {
				return err
			}
			switch {
			case format == "json":
				if list == nil {
					list = []app.Workshop{}
				}
				return a.WriteJSON(list)
			case a.Quiet:
				for _, w := range list {
					fmt.Fprintln(a.Out, app.Printable(w.Project))
				}
				return nil
			}
			if columns := a.Columns(a.Out); columns > 0 && columns < tableColumns {
				return a.lsBlocks(list, a.Table())
			}
			return a.lsTable(list, a.Table())
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also what is down and has kept something")
	return cmd
}

// tableColumns are the columns of a terminal from which a table is readable.
const tableColumns = 80

func (a verbs) lsTable(list []app.Workshop, w *terminal.Table) error {
	fmt.Fprintln(w, "PROJECT\tENGINE\tSTATE\tWORKERS\tMEMORY\tNETWORK\tDIRECTORY")
	for _, l := range list {
		fmt.Fprintln(w, strings.Join([]string{app.Printable(l.Project), l.Engine, listedState(l), workersCount(l), memoryText(l), l.Reach.String(), a.shownDir(l)}, "\t"))
	}
	return w.Flush()
}

// lsBlocks is the list for a narrow terminal: lines that are wrapped as they are.
func (a verbs) lsBlocks(list []app.Workshop, w *terminal.Table) error {
	for _, l := range list {
		parts := []string{listedState(l)}
		if l.Engine != "" {
			parts[0] += " on " + l.Engine
		}
		if n := workersCount(l); n != "" {
			parts = append(parts, "workers "+n)
		}
		for _, text := range []string{memoryText(l), l.Reach.String(), a.shownDir(l)} {
			if text != "" {
				parts = append(parts, text)
			}
		}
		fmt.Fprintln(w, app.Printable(l.Project)+": "+strings.Join(parts, "; "))
	}
	return w.Flush()
}

// workersCount is "3", "1/3" where some don't run, "" for none.
func workersCount(l app.Workshop) string {
	running := 0
	for _, k := range l.Workers {
		if k.State == "running" {
			running++
		}
	}
	switch n := len(l.Workers); {
	case n == 0:
		return ""
	case running < n:
		return fmt.Sprintf("%d/%d", running, n)
	default:
		return strconv.Itoa(n)
	}
}

// memoryText is "5.8MiB".
func memoryText(l app.Workshop) string {
	if l.Memory == nil {
		return ""
	}
	return bytesText(*l.Memory)
}

// listedState is "up 5 minutes", "down, keeps ports".
func listedState(w app.Workshop) string {
	text := w.State
	if w.Since != nil {
		text += " " + strings.ToLower(units.HumanDuration(time.Since(*w.Since)))
	}
	if len(w.Stale) > 0 {
		text += ", stale"
	}
	if len(w.Kept) > 0 {
		text += ", keeps " + strings.Join(w.Kept, ", ")
	}
	return text
}

// shownDir is a directory as a person writes it, and what is special about it.
func (a verbs) shownDir(w app.Workshop) string {
	dir := w.Directory
	switch home := a.Home; {
	case dir == "":
		return "unknown"
	case home != "" && dir == home:
		dir = "~"
	case home != "" && subpath.Within(dir, home):
		dir = "~" + strings.TrimPrefix(dir, home)
	}
	dir = app.Printable(dir)
	if w.Gone {
		dir += " (gone)"
	}
	if w.Owner != nil {
		name := "uid " + strconv.Itoa(*w.Owner)
		if u, err := user.LookupId(strconv.Itoa(*w.Owner)); err == nil {
			name = app.Printable(u.Username)
		}
		dir += " (of " + name + ")"
	}
	return dir
}

package firewall

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

func (a verbs) suggestCommand() *cobra.Command {
	var o app.SuggestRequest
	write := false
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "Print the lines for what workers asked for while they learned",
		Long: `suggest reads the guard's log and prints the smallest list for network.allow that
has what was let through while rooms learned (up --learn): exact names, no
wildcards, without what the file has already. Each line says which worker asked,
how often, and when first.

The list is what untrusted code asked for. Read it line by line: a name that you
don't know may be one to which data leaves.`,
		Example: `  workshop up --learn --for 30m
  workshop firewall suggest
  workshop firewall suggest --denied --worker builder
  workshop firewall suggest --write && workshop firewall reload`,
		Annotations: command.Formats("yaml", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.suggest(ctx, cmd, o, write)
		}),
	}
	cmd.Flags().StringVar(&o.Worker, "worker", "", "only what this worker's room asked for")
	cmd.Flags().BoolVar(&o.Denied, "denied", false, "also what was refused because no line has it")
	cmd.Flags().BoolVar(&write, "write", false, "put the lines into workshop.yaml; its comments and order stay")
	return cmd
}

func (a verbs) suggest(ctx context.Context, cmd *cobra.Command, o app.SuggestRequest, write bool) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	result, err := a.Suggest(ctx, o, a.ProjectGiven())
	if err != nil {
		return err
	}
	if format == "json" {
		err = a.WriteJSON(result)
	} else {
		err = a.suggestText(result)
	}
	if err != nil {
		return err
	}
	a.suggestNotes(result, o)
	if !write {
		return nil
	}
	done, err := a.WriteSuggested(ctx, result)
	if err != nil || done == nil {
		return err
	}
	a.showRewritten(done)
	if done.Learning {
		a.Hint("apply the file and end learning: `workshop firewall reload --reset`")
	} else {
		a.Hint("apply the file: `workshop firewall reload`")
	}
	return nil
}

// suggestText prints the list as YAML to paste.
func (a verbs) suggestText(s *app.Suggestions) error {
	if len(s.Allow) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out, "# This is what untrusted code asked for. Read it line by line, and keep what you know.")
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	for _, l := range s.Allow {
		fmt.Fprintf(w, "- %s\t# %s\n", l.Line, l.Comment())
	}
	return w.Flush()
}

// maxInVain names without an address are listed.
const maxInVain = 20

// suggestNotes says what the list can't.
func (a verbs) suggestNotes(s *app.Suggestions, o app.SuggestRequest) {
	switch {
	case s.Since.IsZero():
		a.Say("the guard's log is empty")
	case s.Lost:
		a.Say("from the guard's log since %s; older lines were thrown away, or are an older guard's", app.WhenText(s.Since))
	}
	if len(s.Allow) == 0 {
		hint := ""
		switch {
		case o.Denied:
		case s.Refused:
			ofWorker := ""
			if o.Worker != "" {
				ofWorker = " --worker " + o.Worker
			}
			hint = "; for what was refused: `workshop firewall suggest --denied" + ofWorker + "`"
		default:
			hint = "; " + s.HowToAsk(a.Shown(s.File))
		}
		a.Say("nothing to suggest%s", hint)
	}
	if names := s.InVain; len(names) > 0 {
		if more := len(names) - maxInVain; more > 0 {
			names = append(slices.Clone(names[:maxInVain]), fmt.Sprintf("%d more", more))
		}
		a.Say("asked for in vain, without an address: %s", app.WorkersText(names))
	}
	if len(s.Tried) > 0 {
		a.Say("left out: %s, which `firewall explain` or `verify` tried at the time; if a worker needs it, let it connect again", app.WorkersText(s.Tried))
	}
	for _, n := range []struct {
		n    int
		what string
	}{
		{s.LeftOut.Covered, "in " + a.Shown(s.File) + " already"},
		{s.LeftOut.Denied, "refused by a deny line, which wins over every other"},
		{s.LeftOut.Elsewhere, "asked for by workers alone whose lists are those of an import or a base (`workshop firewall log --denied` says by which)"},
		{s.LeftOut.Nameless, "by address, without a name (`workshop firewall log` shows them; a line with a cidr allows an address)"},
		{s.LeftOut.Other, "refused for a reason that no line with a name changes (`workshop firewall log --denied`)"},
	} {
		if n.n > 0 {
			a.Say("left out: %d %s", n.n, n.what)
		}
	}
}

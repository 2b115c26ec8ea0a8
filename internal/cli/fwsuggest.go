package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// suggestOptions are the flags of firewall suggest.
type suggestOptions struct {
	worker        string
	denied, write bool
}

func (a *program) firewallSuggestCommand() *cobra.Command {
	var o suggestOptions
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
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.firewallSuggest(ctx, cmd, o)
		}),
	}
	cmd.Flags().StringVar(&o.worker, "worker", "", "only what this worker's room asked for")
	cmd.Flags().BoolVar(&o.denied, "denied", false, "also what was refused because no line has it")
	cmd.Flags().BoolVar(&o.write, "write", false, "put the lines into workshop.yaml; its comments and order stay")
	a.completeWorkerFlag(cmd)
	return cmd
}

func (a *program) firewallSuggest(ctx context.Context, cmd *cobra.Command, o suggestOptions) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	s, err := a.Load(ctx)
	if err != nil {
		return err
	}
	if o.worker != "" {
		if err := s.CheckWorkers([]string{o.worker}); err != nil {
			return err
		}
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, _, err := a.observeGuard(ctx, t, o.worker)
	if err != nil {
		return err
	}
	defer e.Close()
	asked := askedFor{options: o, names: map[firewall.Name]*askedName{}}
	r := &eventReader{stamped: true, each: asked.add}
	if err := readEvents(ctx, e, t.Name, engine.LogsOptions{}, r); err != nil {
		return app.EngineError(err)
	}
	result := asked.suggest(s)
	result.Since = r.first
	if format == "json" {
		err = a.writeJSON(result)
	} else {
		err = a.suggestText(result)
	}
	if err != nil {
		return err
	}
	a.suggestNotes(t, result, o)
	if o.write {
		return a.writeSuggested(ctx, s, result, o)
	}
	return nil
}

// suggestText prints the list as YAML to paste.
func (a *program) suggestText(s suggested) error {
	if len(s.Allow) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out, "# This is what untrusted code asked for. Read it line by line, and keep what you know.")
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	for _, l := range s.Allow {
		fmt.Fprintf(w, "- %s\t# %s\n", l.Line, l.comment())
	}
	return w.Flush()
}

// suggestNotes says what the list can't.
func (a *program) suggestNotes(t app.ProjectRef, s suggested, o suggestOptions) {
	if s.Since.IsZero() {
		a.say("the guard's log is empty")
	} else {
		a.say("from the guard's log since %s; older lines were thrown away, or are an older guard's", app.WhenText(s.Since))
	}
	if len(s.Allow) == 0 {
		hint := ""
		if !o.denied {
			hint = "; `workshop up --learn` lets workers ask, and --denied shows what was refused"
		}
		a.say("%s", a.commands("nothing to suggest"+hint))
	}
	for _, n := range []struct {
		n    int
		what string
	}{
		{s.LeftOut.Covered, "in " + a.Shown(t.File) + " already"},
		{s.LeftOut.Denied, "refused by a deny line, which wins over every other"},
		{s.LeftOut.Nameless, "by address, without a name (`workshop firewall log` shows them; a line with a cidr allows an address)"},
		{s.LeftOut.Other, "refused for a reason that no line with a name changes (`workshop firewall log --denied`)"},
	} {
		if n.n > 0 {
			a.say("left out: %d %s", n.n, a.commands(n.what))
		}
	}
}

// maxWritten lines are what a person can be expected to have read.
const maxWritten = 100

// writeSuggested puts the lines into the file: into a worker's own list where it
// has one, else into the workshop's.
func (a *program) writeSuggested(ctx context.Context, s *app.Source, found suggested, o suggestOptions) error {
	if len(found.Allow) > maxWritten {
		return app.Fail(app.CodeRefused, "these are %d lines, more than the %d that are written at once; nothing was written", len(found.Allow), maxWritten).
			Hint("paste those that you know, or see which worker asks for so many names: `workshop firewall log`")
	}
	before, err := boundedfile.Read(s.Path, workshop.MaxFileSize)
	if err != nil {
		return err
	}
	after := before
	for _, l := range found.Allow {
		for _, worker := range l.listsOf(s, o.worker) {
			if after, err = a.withLines(s, after, []firewall.Rule{l.rule}, changeOptions{worker: worker, comment: l.comment()}); err != nil {
				return err
			}
		}
	}
	if string(before) == string(after) {
		a.say("nothing was written")
		return nil
	}
	if err := a.rewrite(ctx, s, before, after); err != nil {
		return err
	}
	a.hint("`workshop firewall reload` gives the file to the guard")
	return nil
}

// listsOf are the lists that get a line: "" is the workshop's, a name the
// worker's own.
func (l *suggestedLine) listsOf(s *app.Source, worker string) []string {
	lists := map[string]bool{}
	for _, name := range l.Workers {
		w := s.Worker(name)
		if w == nil || w.Container.Network.Mode.V == firewall.None || worker != "" && name != worker || firewall.CoveredBy(l.rule, filled(w.Container.Network.Allow)) {
			continue
		}
		if sameRules(w.Container.Network.Allow, s.Workshop.Container.Network.Allow) {
			name = ""
		}
		lists[name] = true
	}
	return slices.Sorted(maps.Keys(lists))
}

// suggested is the result of suggest.
type suggested struct {
	// Since is when the log begins.
	Since   time.Time       `json:"since,omitzero"`
	Allow   []suggestedLine `json:"allow"`
	LeftOut leftOut         `json:"left_out"`
}

// leftOut counts what was asked for and isn't suggested.
type leftOut struct {
	Covered  int `json:"covered"`  // by a line of the file
	Denied   int `json:"denied"`   // by a deny line of the file
	Nameless int `json:"nameless"` // addresses, or names that aren't names
	Other    int `json:"other"`    // refused for another reason than a missing line
}

// suggestedLine is one line for network.allow.
type suggestedLine struct {
	Line    string    `json:"line"` // as it is written
	Name    string    `json:"name"`
	Ports   string    `json:"ports"` // that were asked for
	Workers []string  `json:"workers"`
	Count   uint64    `json:"count"`
	First   time.Time `json:"first"`
	Learned bool      `json:"learned"` // it was let through
	Refused bool      `json:"refused"`

	rule firewall.Rule
}

// comment says who asked, how often, and when first.
func (l *suggestedLine) comment() string {
	often := "once"
	if l.Count > 1 {
		often = strconv.FormatUint(l.Count, 10) + " times"
	}
	did := ""
	if l.Refused && !l.Learned {
		did = "refused "
	}
	return fmt.Sprintf("%s: %s%s, first %s", app.WorkersText(l.Workers), did, often, l.First.Local().Format("2006-01-02 15:04"))
}

func sortLines(lines []suggestedLine) {
	slices.SortFunc(lines, func(a, b suggestedLine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(len(a.Line), len(b.Line)), cmp.Compare(a.Line, b.Line))
	})
}

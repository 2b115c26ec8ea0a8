package firewall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

func (a verbs) explainCommand() *cobra.Command {
	var o app.ExplainRequest
	check := false
	cmd := &cobra.Command{
		Use:   "explain HOST[:PORT]",
		Short: "Say why a connection is allowed or refused",
		Long: `explain says what becomes of a worker's connection to a name or address: the line
that decides and where it is written, what enforces it, and whether other workers
differ; without --worker, for each that does. Without a port it is 443, and 80 where
that differs.

If the workshop is up, it also asks the guard, and tries it in the worker: a
question to the guard's DNS, and on 443 a TLS handshake, on 80 a HEAD request, on
other ports a connection. Nothing is sent to a host that isn't allowed. Where
what is seen differs from what the file says, it ends with 1.`,
		Example: `  workshop firewall explain api.example.org
  workshop firewall explain ssh.example.org:22 --worker greeter
  workshop firewall explain 169.254.169.254:80 --no-probe
  workshop firewall explain --check api.example.org || echo refused`,
		Args:              command.Args(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       command.Formats("text", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			o.Target = args[0]
			return a.explain(ctx, cmd, o, check)
		}),
	}
	cmd.Flags().StringVar(&o.Worker, "worker", "", "the worker that connects; else all, one by one where they differ")
	cmd.Flags().BoolVar(&o.NoProbe, "no-probe", false, "try nothing, and don't ask the guard to look anything up")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 4 if it is refused")
	return cmd
}

func (a verbs) explain(ctx context.Context, cmd *cobra.Command, o app.ExplainRequest, check bool) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	out, err := a.Explain(ctx, o)
	if err != nil {
		return err
	}
	if format == "json" {
		err = a.WriteJSON(out.Connections)
	} else {
		err = a.explainText(out.Connections)
	}
	if err != nil {
		return err
	}
	return a.explainEnd(out, check)
}

// explainEnd reports what differs, and returns the exit code.
func (a verbs) explainEnd(out *app.Explained, check bool) error {
	if out.View.Missing != nil {
		a.Say("only what %s says: %v", out.View.File, out.View.Missing)
	}
	f := &app.Failure{Code: app.CodeFailed}
	var problems []string
	for _, e := range out.Connections {
		for _, d := range e.Differences {
			problems = append(problems, e.Endpoint()+" for "+e.Worker+": "+d)
		}
	}
	if out.View.Changed() {
		f.Hint("%s", changedText(out.View))
	}
	if len(problems) > 0 {
		f.Err = fmt.Errorf("what is seen is not what is expected:\n%s", strings.Join(problems, "\n"))
		return f
	}
	a.PrintFailure(f)
	if check && slices.ContainsFunc(out.Connections, func(e *app.Explanation) bool { return !e.Allowed }) {
		return app.Exit(app.CodeRefused)
	}
	return nil
}

// explainText prints explanations for a person.
func (a verbs) explainText(all []*app.Explanation) error {
	red, green, faint := terminal.Paint(a.ColorOut(), color.FgRed, color.Bold), terminal.Paint(a.ColorOut(), color.FgGreen, color.Bold), terminal.Paint(a.ColorOut(), color.Faint)
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		a.WriteLine(verdictText(e, red, green))
		width := a.Columns(a.Out)
		put := func(key, format string, args ...any) {
			lines := strings.Split(textwrap.Lines(fmt.Sprintf(format, args...), max(0, width-12), 0), "\n")
			fmt.Fprintf(a.Out, "  %-9s %s\n", key, strings.Join(lines, "\n"+strings.Repeat(" ", 12)))
		}
		put("reason", "%s", a.Pasteable(e.Why))
		if e.Line != nil {
			put("line", "%s", lineText(e.Line))
		}
		if e.Also != nil {
			put("also", "%s", lineText(e.Also))
		}
		if l := e.Line; l != nil && l.At != "" {
			put("endpoint", "%s, which is in the worker's $%s; it has %s", l.URL, firewall.Endpoint{At: l.At}.Variable(), l.LetsThrough())
			if l.Credential != "" {
				put("adds", "the credential %s, which the worker never has", l.Credential)
			}
		}
		for _, l := range e.Near {
			put("near", "with port %s at %s", l.Ports, lineText(&l))
		}
		if !e.Allowed {
			var allow []string
			if line := e.FileLine(); line != "" {
				allow = append(allow, line)
			}
			if e.Command != "" {
				allow = append(allow, "or now: `"+a.CommandLine(e.Command)+"`")
			}
			if len(allow) > 0 {
				put("to allow", "%s", strings.TrimPrefix(strings.Join(allow, "\n"), "or now: "))
			}
		}
		for _, s := range e.Enforced {
			who, does, _ := strings.Cut(s, ": ")
			put(who, "%s", faint(does))
		}
		for _, o := range e.Others {
			put("others", "%s", otherText(o, e))
		}
		if e.Now != nil {
			showNow(e.Now, put)
		}
		for _, d := range e.Differences {
			put("DIFFERS", "%s", red(d))
		}
	}
	return nil
}

// verdictText is what becomes of a connection, in one line; where something else is
// seen than what the file says, both.
func verdictText(e *app.Explanation, red, green func(string) string) string {
	verdict := red("refused")
	if e.Allowed {
		verdict = green("allowed")
	}
	if len(e.Differences) > 0 {
		verdict += " by the file, " + red("but not in what runs")
	}
	return fmt.Sprintf("%s: %s for %s", verdict, e.Endpoint(), forWhom(e))
}

// forWhom names the worker, and with whom it shares its room.
func forWhom(e *app.Explanation) string {
	others := slices.DeleteFunc(slices.Clone(e.Workers), func(w string) bool { return w == e.Worker })
	if len(others) == 0 || e.Room == "" {
		return e.Worker
	}
	return fmt.Sprintf("%s, which shares a room with %s", e.Worker, app.WorkersText(others))
}

// lineText is the line with its place.
func lineText(l *app.ExplainedLine) string {
	switch {
	case l.Live:
		return "a live change: " + l.Text
	case l.PolicyRule.Line == "":
		return l.Text
	}
	s := l.PolicyRule.Line + ": " + l.Text
	if l.Preset != "" {
		s += fmt.Sprintf("\n%s, of preset %s (version %d): %s", l.Target, l.Preset, l.Version, l.Purpose)
	} else if l.Target != "" && !strings.Contains(l.Text, l.Target) {
		s += " (" + l.Target + ")"
	}
	return s
}

// otherText says what becomes of other workers' connections.
func otherText(o app.ExplainedOther, e *app.Explanation) string {
	word := "refused"
	if o.Allowed {
		word = "allowed"
	}
	s := app.WorkersText(o.Workers) + ": " + word
	if o.Reason != e.Reason {
		s += ", " + app.ReasonText(o.Reason, e.Host, o.Line)
	}
	if o.Line != "" {
		s += " (" + o.Line + ")"
	}
	return s
}

// showNow prints what is seen now.
func showNow(n *app.ProbedNow, put func(key, format string, args ...any)) {
	if g := n.Guard; g != nil {
		word := "would refuse it"
		if g.Allowed {
			word = "would let it through"
		}
		if g.Line != "" && g.Address == "" {
			word += ", by " + app.LineText(g.Line)
		}
		for _, x := range g.Addresses {
			word += "\n" + app.Printable(x.Address) + ": "
			switch {
			case !x.Allowed:
				why, _, _ := strings.Cut(app.ReasonText(x.Reason, "", ""), ";")
				word += why
			case g.Proxy != "":
				word += "would be dialled through the upstream proxy " + app.Printable(g.Proxy)
			default:
				word += "would be dialled"
			}
		}
		if g.ResolveError != "" {
			word += "\nno address: " + app.Printable(g.ResolveError)
		}
		put("now", "the guard %s", word)
	}
	if s := n.LookUp; s != nil {
		put("now", "the worker's look-up: %s", s.Seen)
	}
	if s := n.Connection; s != nil {
		words := map[app.ProbeOutcome]string{app.ProbeReached: "reached", app.ProbeRefused: "refused", app.ProbeSilent: "open, without an answer", app.ProbeFailed: "closed"}
		kind, _, _ := strings.Cut(s.Probe, " ")
		detail := clip.Runes(s.Detail, 100)
		if detail != "" {
			detail = ", " + detail
		}
		put("now", "the worker's connection (%s): %s: %s%s", kind, words[s.Outcome], s.Seen, detail)
	}
	if n.Problem != "" {
		put("now", "not tried in the worker: %s", n.Problem)
	}
}

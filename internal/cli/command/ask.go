package command

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/mattn/go-runewidth"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// interactive reports whether a person can be asked.
func (a *Program) interactive() bool { return terminal.Is(a.In) && terminal.Is(a.Err) }

// Asker returns what puts yes-or-no questions to the person at the terminal; nil if
// nobody can be asked.
func (a *Program) Asker() func(context.Context, string) (bool, error) {
	if !a.interactive() {
		return nil
	}
	return a.ask
}

// ask puts a yes-or-no question on the terminal; anything but a yes is a no.
func (a *Program) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.Err, textwrap.Lines(question+" [y/N]", a.Columns(a.Err), 2)+" ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return false, context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	}
}

// agreeBuild asks the person at the terminal about an image that is to be built.
func (a *Program) agreeBuild(ctx context.Context, b app.BuildRequest) (bool, error) {
	a.showBuild(b)
	return a.ask(ctx, "build it? (asked once per content)")
}

// agreeSources asks the person at the terminal about files of other repositories.
func (a *Program) agreeSources(ctx context.Context, all []app.SourceRequest) (bool, error) {
	a.showSources(all)
	switch all[0].Stage {
	case app.StageAsk:
		return a.ask(ctx, "ask it for its releases?")
	case app.StageFetch:
		return a.ask(ctx, "fetch it, and use it here? (asked once per commit)")
	}
	return a.ask(ctx, "use "+map[bool]string{true: "it", false: "them"}[len(all) == 1]+" here?")
}

// agreeCredentials asks the person at the terminal about uses of their credentials.
func (a *Program) agreeCredentials(ctx context.Context, all []app.CredentialUse) (bool, error) {
	return a.ask(ctx, a.showCredentials(all))
}

// onScreen is how many rows of a terminal a person sees for certain.
const onScreen = 20

// showCredentials shows what would use credentials, every line whole, and returns the
// question: it says how much there is where not all of it is on the screen any more.
func (a *Program) showCredentials(all []app.CredentialUse) (question string) {
	width, lines, rows := cmp.Or(a.Columns(a.Err), 80), 0, 0
	show := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		fmt.Fprintln(a.Err, text)
		rows += 1 + max(0, runewidth.StringWidth(text)-1)/width
	}
	show("the workshop wants your credentials for requests and signatures of workers; no worker gets them:")
	for _, u := range all {
		show("  credential  %s (%s)", app.Printable(u.Name), app.Printable(u.Source))
		show("  hosts       %s", app.Printable(strings.Join(u.Hosts, ", ")))
		for _, text := range u.Lines {
			show("  | %s", app.Printable(text))
			lines++
		}
	}
	if rows > onScreen {
		return fmt.Sprintf("use them for all of this, %s in %d rows of the screen? (asked once per line)", app.Count(lines, "line"), rows)
	}
	return "use them so? (asked once per line)"
}

func (a *Program) showSources(all []app.SourceRequest) {
	for _, r := range all {
		a.showSource(r)
	}
}

// Limits of the needs and grants that are shown, in lines and bytes of each: what is asked
// about stays on the screen.
const (
	maxNeeds     = 20
	maxNeedsLine = 200
)

// showSource shows what is to be fetched or used of another repository.
func (a *Program) showSource(r app.SourceRequest) {
	fmt.Fprintf(a.Err, "the workshop needs files of another repository:\n")
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(a.Err, "  %-8s %s\n", name, app.Printable(text))
		}
	}
	line("source", r.From)
	line("version", cmp.Or(r.Version, "the newest release"))
	line("release", r.Ref)
	line("commit", r.Commit)
	line("signer", r.Signer)
	if r.Unpublished {
		line("but", "no branch or tag of the source points at this commit: it was moved, or somebody else made it")
	}
	if r.Files > 0 {
		line("files", fmt.Sprint(r.Files))
	}
	if r.Needs != "" {
		a.showLines("needs    what the workers want to be granted:", strings.Split(strings.TrimRight(r.Needs, "\n"), "\n"))
	}
	if len(r.Grants) > 0 {
		a.showLines("grants   what the workers get by it:", r.Grants)
	}
}

func (a *Program) showLines(title string, lines []string) {
	fmt.Fprintln(a.Err, "  "+title)
	for _, text := range lines[:min(len(lines), maxNeeds)] {
		fmt.Fprintf(a.Err, "  | %s\n", app.Printable(clip.Bytes(text, maxNeedsLine)))
	}
	if n := len(lines) - maxNeeds; n > 0 {
		fmt.Fprintf(a.Err, "  and %d more lines\n", n)
	}
}

// showBuild shows what would be built.
func (a *Program) showBuild(b app.BuildRequest) {
	fmt.Fprintf(a.Err, "the image of %s is to be built on the engine:\n", b.For)
	fmt.Fprintf(a.Err, "  context     %s (%s, %s)\n  dockerfile  %s\n",
		app.Printable(b.Context), app.Count(b.Files, "file"), units.BytesSize(float64(b.Bytes)), app.Printable(b.Dockerfile))
	if b.Target != "" {
		fmt.Fprintf(a.Err, "  target      %s\n", app.Printable(b.Target))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		fmt.Fprintf(a.Err, "  argument    %s=%s\n", app.Printable(name), app.Printable(b.Args[name]))
	}
	for line := range strings.Lines(string(b.Text)) {
		fmt.Fprintf(a.Err, "  | %s\n", app.Printable(line))
	}
}

package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// printResult prints what a tool of a worker answered, and returns the exit code for it.
func (a verbs) printResult(w *workshop.Worker, name string, r *session.Result, format string) error {
	var ran *tool.ShellResult
	if name == tool.Shell && len(r.Structured) > 0 {
		var s tool.ShellResult
		if json.Unmarshal(r.Structured, &s) == nil {
			ran = &s
		}
	}
	switch {
	case format == "json":
		if err := a.printStructured(r); err != nil {
			return err
		}
	case ran != nil:
		a.writeText(a.Out, ran.Stdout.Text)
		a.writeText(a.Err, ran.Stderr.Text)
	case !r.Failed:
		a.writeText(a.Out, ended(r.Text()))
	}
	switch {
	case ran != nil:
		return a.shellEnd(w, ran)
	case r.Failed:
		return app.Fail(app.CodeFailed, "%s: %s", name, a.shownText(a.Err, r.Text()))
	}
	return nil
}

// shellEnd says what the code alone doesn't, and passes it on.
func (a verbs) shellEnd(w *workshop.Worker, ran *tool.ShellResult) error {
	switch {
	case ran.TimedOut:
		took, limit := time.Duration(ran.DurationMS)*time.Millisecond, w.Container.Resources.Timeout.V
		if took < limit {
			a.Warn("the command timed out after %v, by timeout_seconds of the call", took.Round(100*time.Millisecond))
		} else {
			a.Warn("the command timed out after %v (resources.timeout of %s)", limit, w.Name)
		}
	case ran.Signal != "":
		a.Warn("the command was ended by %s", app.Printable(ran.Signal))
	}
	for name, out := range map[string]tool.Output{"standard output": ran.Stdout, "standard error": ran.Stderr} {
		if out.Omitted > 0 {
			a.Warn("%d bytes of the %s were left out; max_output_bytes raises the limit", out.Omitted, name)
		}
	}
	if ran.Note != "" {
		for note := range strings.SplitSeq(ran.Note, "\n") {
			if full, _ := protocol.Notes(note); len(full) > 0 && strings.HasPrefix(note, full[0]) {
				continue // the hint says it
			}
			a.Say("%s", app.Printable(protocol.AfterSession(note)))
		}
	}
	if ran.ExitCode != 0 {
		return app.Exit(ran.ExitCode)
	}
	return nil
}

// printStructured prints the result as JSON; of a tool without one, the content.
func (a verbs) printStructured(r *session.Result) error {
	if len(r.Structured) > 0 {
		return a.WriteJSON(r.Structured)
	}
	return a.WriteJSON(struct {
		Failed  bool              `json:"failed,omitempty"`
		Content []json.RawMessage `json:"content"`
	}{r.Failed, r.Content})
}

// ended returns a text with a final newline.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// writeText writes text of a worker.
func (a verbs) writeText(w io.Writer, s string) {
	// A write fails only where nobody reads: a pipe that was closed.
	_, _ = io.WriteString(w, a.shownText(w, s))
}

// shownText is text of a worker as it may stand on that stream: on a terminal,
// nothing in it drives the terminal.
func (a verbs) shownText(w io.Writer, s string) string {
	if !terminal.Is(w) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j := range cells {
			cells[j] = app.Printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// callProgress shows on a terminal how a call goes: one line, which is removed
// at the end.
type callProgress struct {
	mu    sync.Mutex
	w     io.Writer // nil: nothing is shown
	width int
	shown bool
}

func (a verbs) callProgress() *callProgress {
	p := &callProgress{}
	if !a.Quiet && terminal.Is(a.Err) && a.Getenv("TERM") != "dumb" {
		p.w, p.width = a.Err, max(terminal.Width(a.Err, ""), 20)
	}
	return p
}

func (p *callProgress) update(s session.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	text := app.Printable(strings.ReplaceAll(s.Message, "\n", " "))
	if s.Total > 0 {
		text = fmt.Sprintf("%.0f%% %s", 100*s.Done/s.Total, text)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", clip.Runes(text, p.width-1))
	p.shown = true
}

func (p *callProgress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove()
	p.w = nil
}

// remove takes the line away; the caller holds the lock.
func (p *callProgress) remove() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.shown = false
}

// asker is one on the terminal that the progress is shown on: who is asked needs no
// line that says so. Nil stays nil.
func (p *callProgress) asker(of approval.Asker) approval.Asker {
	if of == nil {
		return nil
	}
	return progressAsker{of, p}
}

type progressAsker struct {
	approval.Asker
	progress *callProgress
}

// Ask implements [approval.Asker].
func (a progressAsker) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	a.progress.mu.Lock()
	a.progress.remove()
	a.progress.mu.Unlock()
	return a.Asker.Ask(ctx, q)
}

package session

import (
	"context"
	"encoding/json"
	"strings"
)

// Watch begins to look at what a worker's boundary refuses, for a call that is
// about to run. What it returns is called when the call has ended, and returns
// sentences for the model; nil: there is nothing to look at.
type Watch func(worker, tool string) func(context.Context, Ended) []string

// Ended is a call that has ended.
type Ended struct {
	Arguments json.RawMessage
	// Output is what a command printed, or what a tool said that failed. A worker
	// wrote it.
	Output []string
	// Note is what the worker's toolbox says of a command's end.
	Note   string
	Failed bool
}

// watch begins to look at the boundary of the worker of a call. The function adds
// what was seen to the call's result.
func (c *call) watch() func(context.Context, *Result) {
	var look func(context.Context, Ended) []string
	if c.host.c.Watch != nil && !c.local() {
		look = c.host.c.Watch(c.session.worker.Name, c.own)
	}
	return func(ctx context.Context, r *Result) {
		if look != nil && r != nil {
			r.addNotes(look(ctx, Ended{c.args, r.output(), r.note(), r.failed()}))
		}
	}
}

// failed reports whether the tool or its command failed.
func (r *Result) failed() bool { return r.Failed || r.exitCode != nil && *r.exitCode != 0 }

// output is what [Ended] has of a result.
func (r *Result) output() []string {
	switch {
	case r.shell != nil:
		return []string{r.shell.Stdout.Text, r.shell.Stderr.Text}
	case r.Failed:
		return []string{r.Text()}
	}
	return nil
}

// note is that of a command.
func (r *Result) note() string {
	if r.shell == nil {
		return ""
	}
	return r.shell.Note
}

// addNotes adds sentences to a result: a text of their own, which no output of the
// worker can imitate, and the note of a result that has a place for it.
func (r *Result) addNotes(notes []string) {
	if len(notes) == 0 {
		return
	}
	l := &lines{}
	for _, note := range notes {
		l.addf("[%s]", note)
	}
	r.Content = append(r.Content, textBlock(l.String()))
	if v := r.shell; v != nil {
		if v.Note != "" {
			notes = append([]string{v.Note}, notes...)
		}
		v.Note = strings.Join(notes, "\n")
		r.Structured, _ = json.Marshal(v)
	}
}

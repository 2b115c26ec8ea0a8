package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// What was seen during a call stands in its note and in its text, also of one that
// failed; what watches knows what the call printed.
func TestNotesOfACall(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash, Read, Write")
	w := startWorker(t, grantOf(ws, "w"))
	var ended []Ended
	watch := func(worker, name string) func(context.Context, Ended) []string {
		if name == tool.WriteFile {
			return nil
		}
		return func(_ context.Context, e Ended) []string {
			ended = append(ended, e)
			return []string{"first of " + worker, "second"}
		}
	}
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: yes(), Watch: watch}, "w")
	r := must(t, h, "shell", "command", "echo out; echo err >&2; exit 3")
	// Notes are a text of their own, which no output can imitate.
	for i, want := range []string{"out\n[stderr]\nerr\n[exit code 3]", "[first of w]\n[second]"} {
		var b contentBlock
		if len(r.Content) != 2 || json.Unmarshal(r.Content[i], &b) != nil || b.Text != want {
			t.Errorf("content %s, want %q", r.Content, want)
		}
	}
	var s tool.ShellResult
	if err := json.Unmarshal(r.Structured, &s); err != nil || s.Note != "first of w\nsecond" || s.ExitCode != 3 || s.Stdout.Text != "out\n" {
		t.Errorf("%v, structured %s", err, r.Structured)
	}
	r, err := h.Call(t.Context(), "read_file", args("path", "none"), Options{})
	if err != nil || !r.Failed || !strings.Contains(r.Text(), "no such file or directory") || !strings.HasSuffix(r.Text(), "\n[first of w]\n[second]") {
		t.Errorf("%v, %q", err, r.Text())
	}
	if len(ended) != 2 || !ended[0].Failed || !slices.Equal(ended[0].Output, []string{"out\n", "err\n"}) || len(ended[1].Output) != 1 {
		t.Errorf("watched %+v", ended)
	}
	if got := textOf(must(t, h, "write_file", "path", "x", "content", "x")); strings.Contains(got, "first of") {
		t.Errorf("a note without a watch: %q", got)
	}
}

// countedAsker says yes and counts.
type countedAsker struct{ asked int }

func (a *countedAsker) Ask(context.Context, approval.Question) (approval.Answer, error) {
	a.asked++
	return approval.Once, nil
}

// Nobody is asked about a call that can't succeed, and it fails as it would have;
// whether it can is no way to learn about a file that needs a yes to be read, and
// changes nothing.
func TestImpossibleIsNotAsked(t *testing.T) {
	read := func(a workshop.Approval) workshop.ApprovalRule {
		return workshop.ApprovalRule{Tool: "read_file", Approval: a}
	}
	for _, c := range []struct {
		name, tools, tool string
		rules             []workshop.ApprovalRule
		args              []any
		asked             bool
		want              string // of a call that failed
	}{
		{name: "possible", tools: "Read, Edit", tool: "edit_file", args: []any{"path", "f", "old_string", "one", "new_string", "two"}, asked: true},
		{name: "text that isn't there", tools: "Read, Edit", tool: "edit_file", args: []any{"path", "f", "old_string", "three", "new_string", "two"}, want: "old_string is not in f"},
		{name: "text that isn't unique", tools: "Read, Edit", tool: "edit_file", args: []any{"path", "twice", "old_string", "a", "new_string", "two"}, want: "occurs 2 times"},
		{name: "file that isn't there", tools: "Read, Edit", tool: "edit_file", args: []any{"path", "none", "old_string", "a", "new_string", "two"}, want: "no such file"},
		{name: "write to a directory", tools: "Read, Write", tool: "write_file", args: []any{"path", ".", "content", "x"}, want: "is a directory"},
		{name: "new directories", tools: "Read, Write", tool: "write_file", args: []any{"path", "new/dir/f", "content", "x"}, asked: true},
		{name: "reading asks", tools: "Read, Edit", tool: "edit_file", rules: []workshop.ApprovalRule{read(workshop.ApprovalAsk)}, args: []any{"path", "f", "old_string", "three", "new_string", "two"}, asked: true, want: "old_string is not in f"},
		{name: "reading is denied", tools: "Read, Edit", tool: "edit_file", rules: []workshop.ApprovalRule{read(workshop.ApprovalDeny)}, args: []any{"path", "f", "old_string", "three", "new_string", "two"}, asked: true, want: "old_string is not in f"},
		{name: "reading isn't offered", tools: "Edit", tool: "edit_file", args: []any{"path", "f", "old_string", "three", "new_string", "two"}, asked: true, want: "old_string is not in f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := aWorkshop(t, "", "w", "allowed-tools: "+c.tools)
			w := startWorker(t, grantOf(ws, "w"))
			for name, text := range map[string]string{"f": "one\n", "twice": "a a\n"} {
				if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			asker := &countedAsker{}
			h := openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: &approval.Gate{Policy: approval.Policy{Rules: c.rules}, Asker: asker}}, "w")
			r, err := h.Call(t.Context(), c.tool, args(c.args...), Options{})
			if err != nil || r.Failed != (c.want != "") || !strings.Contains(r.Text(), c.want) {
				t.Fatalf("%v, %+v, want %q", err, r, c.want)
			}
			if (asker.asked > 0) != c.asked {
				t.Errorf("asked %d times", asker.asked)
			}
			// With nobody to ask, a call that may be possible changes nothing.
			h = openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: &approval.Gate{Policy: approval.Policy{Rules: c.rules}}}, "w")
			if err := os.WriteFile(w.path("f"), []byte("one\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := w.file("f") + w.file("twice")
			_ = os.RemoveAll(w.path("new"))
			_, err = h.Call(t.Context(), c.tool, args(c.args...), Options{})
			if _, refused := errors.AsType[*approval.RefusedError](err); c.asked && !refused {
				t.Errorf("with nobody to ask: %v", err)
			}
			if _, err := os.Stat(w.path("new")); err == nil || w.file("f")+w.file("twice") != before {
				t.Errorf("the look changed something: %q, was %q", w.file("f")+w.file("twice"), before)
			}
		})
	}
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/session/approval"
)

// asker puts questions to the person at the client, as a form
// (elicitation/create, since 2025-06-18).
type asker struct{ ss *mcp.ServerSession }

// askerFor is nil where the client can't ask. A client that says neither form
// nor url means form.
func askerFor(ss *mcp.ServerSession, p *mcp.InitializeParams) approval.Asker {
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return nil
	}
	if e := p.Capabilities.Elicitation; e.Form == nil && e.URL != nil {
		return nil
	}
	return asker{ss}
}

// answer is one choice, and how a person reads it.
type choice struct {
	answer approval.Answer
	title  string
}

// Ask is that of approval.Asker. Whatever isn't a clear yes is a no.
func (a asker) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	text := wording(q)
	if len(text) > MaxQuestion {
		return approval.No, fmt.Errorf("the call is %d KiB of text: too long to be read before it is approved; make it smaller, or approve it by a rule of `approvals:` in workshop.yaml", len(text)>>10)
	}
	choices := choicesOf(q)
	var refused *jsonrpc.Error
	res, err := a.ss.Elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: text, RequestedSchema: form(choices)})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.As(err, &refused):
		return "", &approval.AskError{Why: "the client could not ask the person", Detail: "the client answered the question with an error: " + oneLine(refused.Message)}
	case err != nil: // of the SDK, which checks the answer by the schema
		return "", unclear(choices)
	case res.Action == "cancel":
		return approval.No, approval.ErrClosed
	case res.Action == "decline":
		return approval.No, nil
	case res.Action != "accept":
		return "", unclear(choices)
	}
	for _, c := range choices {
		if res.Content["answer"] == string(c.answer) {
			return c.answer, nil
		}
	}
	return "", unclear(choices)
}

// unclear is an answer that is none of those that were offered.
func unclear(choices []choice) error {
	return &approval.AskError{Why: "the client's answer was not understood", Detail: "the client answered the question with something else than " + titles(choices)}
}

// oneLine is the beginning of a client's text.
func oneLine(text string) string {
	return clip.Runes(strings.Join(strings.Fields(text), " "), 200)
}

// wording is what a person decides on. What comes from the call stands behind
// bars: its lines can't look like ours.
func wording(q approval.Question) string {
	var b strings.Builder
	b.WriteString(q.Headline() + ":\n" + approval.Barred(q.Text))
	if q.Why != "" {
		b.WriteString("\nWhy you are asked:\n" + approval.Barred(q.Why))
	}
	if q.Rule != nil && q.Change != "" {
		b.WriteString("\n\"always\" writes:\n" + approval.Barred(q.Change))
	}
	return b.String()
}

// choicesOf offers session and always only where there is a rule to keep, and
// always only where it was shown.
func choicesOf(q approval.Question) []choice {
	out := []choice{{approval.No, "No"}, {approval.Once, "Yes, this once"}}
	if q.Rule == nil {
		return out
	}
	rule := q.Rule.Describe()
	out = append(out, choice{approval.Session, "Yes, and in this session " + rule})
	if q.Change != "" {
		out = append(out, choice{approval.Always, "Yes, always: " + rule})
	}
	return out
}

// titles are the answers in words.
func titles(choices []choice) string {
	var words []string
	for _, c := range choices {
		words = append(words, string(c.answer))
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// form is the schema of the answer. There is no default: who only presses
// return has approved nothing.
func form(choices []choice) json.RawMessage {
	property := struct {
		Type      string   `json:"type"`
		Title     string   `json:"title"`
		Enum      []string `json:"enum"`
		EnumNames []string `json:"enumNames"`
	}{Type: "string", Title: "Run it?"}
	for _, c := range choices {
		property.Enum = append(property.Enum, string(c.answer))
		property.EnumNames = append(property.EnumNames, c.title)
	}
	schema, err := json.Marshal(map[string]any{
		"type":       "object",
		"properties": map[string]any{"answer": property},
		"required":   []string{"answer"},
	})
	if err != nil {
		panic(err)
	}
	return schema
}

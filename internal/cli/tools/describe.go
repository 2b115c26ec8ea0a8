package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
)

// listTools prints what a worker is offered, a line each.
func (a verbs) listTools(worker string, tools []session.Tool, format string) error {
	if format == "json" {
		return a.WriteJSON(toolsJSON(tools))
	}
	if len(tools) == 0 {
		a.Say("%s has no tools: its definition lists none", worker)
		return nil
	}
	w := a.Table()
	for _, t := range tools {
		fmt.Fprintf(w, "%s\t%s\n", app.Printable(t.Name), app.Printable(firstSentence(t.Description)))
	}
	return w.Flush()
}

// toolJSON is a tool as an MCP client sees it, with the hints in one place.
type toolJSON struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Worker       string          `json:"worker"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	ReadOnly     bool            `json:"read_only"`
	Destructive  bool            `json:"destructive"`
	Idempotent   bool            `json:"idempotent"`
	OpenWorld    bool            `json:"open_world"`
}

func toolsJSON(tools []session.Tool) []toolJSON {
	all := make([]toolJSON, len(tools))
	for i, t := range tools {
		all[i] = toolJSON{
			Name: t.Name, Title: t.Title, Description: t.Description, Worker: t.Worker,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld,
		}
	}
	return all
}

// firstSentence of a description, which servers inside write as well: one line.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if first, _, more := strings.Cut(s, ". "); more {
		return first + "."
	}
	return s
}

// describeTool prints what a tool does and takes.
func (a verbs) describeTool(t *session.Tool, format string) error {
	if format == "json" {
		return a.WriteJSON(toolsJSON([]session.Tool{*t})[0])
	}
	s := parseSchema(t.InputSchema)
	fmt.Fprintf(a.Out, "%s\n\n", app.Printable(usageLine(t.Name, s)))
	// A server inside may have written it: no line of it looks like one of ours.
	fmt.Fprint(a.Out, approval.Barred(strings.TrimSpace(t.Description)))
	if len(s.order) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	w := a.Table()
	for _, key := range s.order {
		p := s.Properties[key]
		if p == nil { // null, in the schema of a server inside
			p = &toolSchema{}
		}
		text := p.Description
		if slices.Contains(s.Required, key) {
			text = strings.TrimSuffix("needed; "+text, "; ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", app.Printable(key), app.Printable(typeText(p)), app.Printable(text))
	}
	return w.Flush()
}

// typeText is "text", "list of text", "number".
func typeText(s *toolSchema) string {
	switch s.kind() {
	case "string":
		return "text"
	case "integer":
		return "whole number"
	case "boolean":
		return "true or false"
	case "array":
		return "list of " + typeText(s.Items)
	case "":
		return "any"
	}
	return s.kind()
}

// usageLine is a tool with what it takes: "read_file path=TEXT [max_lines=N]".
func usageLine(name string, s *toolSchema) string {
	words := []string{name}
	for _, key := range s.order {
		word := key + "=" + placeholder(s.Properties[key])
		if !slices.Contains(s.Required, key) {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func placeholder(s *toolSchema) string {
	switch s.kind() {
	case "integer", "number":
		return "N"
	case "boolean":
		return "true|false"
	case "array":
		return placeholder(s.Items) + "…"
	case "object":
		return "JSON"
	}
	if s != nil && len(s.Enum) > 0 {
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprint(v))
		}
		return strings.Join(all, "|")
	}
	return "TEXT"
}

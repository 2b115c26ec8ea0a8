package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Tool is one tool of a server, checked and cut.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	// OutputSchema is nil where there is none.
	OutputSchema json.RawMessage
	// Hints of the server: nobody has checked them.
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// wireTool is a tool as a server sends it (MCP, schema 2025-11-25, Tool).
type wireTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}

// page is one answer to tools/list.
type page struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
}

// take checks one tool. A problem means that it isn't offered.
func take(raw json.RawMessage) (Tool, error) {
	var w wireTool
	if err := json.Unmarshal(raw, &w); err != nil {
		return Tool{}, fmt.Errorf("a tool can't be read: %w", err)
	}
	if !word(w.Name, MaxToolName) {
		return Tool{}, fmt.Errorf("the tool %q isn't named by 1 to %d letters, digits, _ and -", clean(w.Name, 80), MaxToolName)
	}
	if err := checkSchema(w.InputSchema); err != nil {
		return Tool{}, fmt.Errorf("the arguments of the tool %s: %w", w.Name, err)
	}
	title := w.Title
	if title == "" {
		title = w.Annotations.Title
	}
	// The defaults of hints are those of MCP (ToolAnnotations).
	t := Tool{Name: w.Name, Title: oneLine(title, MaxTitle), Description: clean(w.Description, MaxDescription), InputSchema: compact(w.InputSchema),
		ReadOnly: hint(w.Annotations.ReadOnly, false), Destructive: hint(w.Annotations.Destructive, true),
		Idempotent: hint(w.Annotations.Idempotent, false), OpenWorld: hint(w.Annotations.OpenWorld, true)}
	// A schema of results that isn't good is left out: nobody has to rely on it.
	if len(w.OutputSchema) > 0 && checkSchema(w.OutputSchema) == nil && !bytes.Contains(w.OutputSchema, []byte("Ref")) && !bytes.Contains(w.OutputSchema, []byte("$ref")) {
		t.OutputSchema = compact(w.OutputSchema)
	}
	return t, nil
}

func hint(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

func oneLine(s string, most int) string {
	return clean(strings.Join(strings.Fields(s), " "), most)
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

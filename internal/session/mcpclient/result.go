package mcpclient

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// Result is what a tool of a server answered, checked.
type Result struct {
	// Structured is nil where the tool gave no object.
	Structured json.RawMessage
	// Content are content blocks of MCP; never empty.
	Content []json.RawMessage
	// Failed: the tool says what is wrong.
	Failed bool
}

// block is a content block of MCP (schema 2025-11-25, ContentBlock), of each
// kind what we pass on.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Data and Blob are base64.
	Data        string       `json:"data,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Resource    *resource    `json:"resource,omitempty"`
	URI         string       `json:"uri,omitempty"`
	Name        string       `json:"name,omitempty"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Annotations *annotations `json:"annotations,omitempty"`
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     *string `json:"blob,omitempty"`
}

type annotations struct {
	Audience     []string `json:"audience,omitempty"`
	Priority     *float64 `json:"priority,omitempty"`
	LastModified string   `json:"lastModified,omitempty"`
}

// text is a block whose text is written even when it is empty.
type text struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`
	Annotations *annotations `json:"annotations,omitempty"`
}

// takeResult checks the result of tools/call.
func takeResult(raw []byte) (*Result, error) {
	var w struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("its result can't be read: %w", err)
	}
	if len(w.Content) > MaxBlocks {
		return nil, fmt.Errorf("its result has %d parts, more than %d", len(w.Content), MaxBlocks)
	}
	r := &Result{Failed: w.IsError}
	if len(w.Structured) > 0 && w.Structured[0] == '{' {
		r.Structured = compact(w.Structured)
	}
	for i, b := range w.Content {
		out, err := takeBlock(b)
		if err != nil {
			return nil, fmt.Errorf("part %d of its result: %w", i+1, err)
		}
		r.Content = append(r.Content, out)
	}
	if len(r.Content) == 0 {
		t := text{Type: "text", Text: string(r.Structured)}
		if t.Text == "" {
			t.Text = "[no content]"
		}
		out, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		r.Content = []json.RawMessage{out}
	}
	return r, nil
}

// takeBlock passes on what a block of its kind has, and nothing else.
func takeBlock(raw json.RawMessage) (json.RawMessage, error) {
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	switch b.Type {
	case "text":
		return json.Marshal(text{Type: "text", Text: b.Text, Annotations: b.Annotations})
	case "image", "audio":
		if b.MIMEType == "" || !isBase64(b.Data) {
			return nil, errors.New("an " + b.Type + " needs a mimeType, and data in base64")
		}
		return json.Marshal(block{Type: b.Type, Data: b.Data, MIMEType: b.MIMEType, Annotations: b.Annotations})
	case "resource":
		r := b.Resource
		if r == nil || r.URI == "" || (r.Text == nil) == (r.Blob == nil) || r.Blob != nil && !isBase64(*r.Blob) {
			return nil, errors.New("a resource needs a uri, and either a text or a blob in base64")
		}
		return json.Marshal(block{Type: b.Type, Resource: r, Annotations: b.Annotations})
	case "resource_link":
		if b.URI == "" || b.Name == "" {
			return nil, errors.New("a resource_link needs a uri and a name")
		}
		return json.Marshal(block{Type: b.Type, URI: b.URI, Name: b.Name, Title: b.Title, Description: b.Description, MIMEType: b.MIMEType, Annotations: b.Annotations})
	}
	return nil, fmt.Errorf("MCP has no content of type %q", clean(b.Type, 40))
}

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

package session

import (
	"encoding/json"
	"fmt"
	"strings"
)

// contentBlock is what of a content block of MCP is printed
// (schema 2025-06-18, ContentBlock).
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
	Resource *struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// text is the block for a person.
func (b *contentBlock) text() string {
	switch {
	case b.Type == "text":
		return b.Text
	case b.Resource != nil && b.Resource.Blob == "":
		return b.Resource.Text
	case b.Resource != nil:
		return fmt.Sprintf("[%s %s, %d bytes as base64]", b.Resource.URI, b.Resource.MIMEType, len(b.Resource.Blob))
	case b.URI != "":
		return fmt.Sprintf("[%s]", b.URI)
	}
	return fmt.Sprintf("[%s %s, %d bytes as base64]", b.Type, b.MIMEType, len(b.Data))
}

// Text is what a tool answered, for a person.
func (r *Result) Text() string {
	var parts []string
	for _, raw := range r.Content {
		var b contentBlock
		if json.Unmarshal(raw, &b) == nil {
			parts = append(parts, b.text())
		}
	}
	return strings.Join(parts, "\n")
}

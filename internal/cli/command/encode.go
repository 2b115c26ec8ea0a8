package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/lib/visible"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// WriteYAML writes a result so that what is shown is what it says: text that isn't
// shown as it is, or turns or hides other text, is escapes in double quotes.
func (a *Program) WriteYAML(v any) error {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return err
	}
	quoteHidden(&n)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&n), e.Close()); err != nil {
		return err
	}
	_, err := io.WriteString(a.Out, escaped(b.String(), yamltext.Escape))
	return err
}

// quoteHidden gives double quotes to each text with a character that isn't shown.
func quoteHidden(n *yaml.Node) {
	if strings.ContainsFunc(n.Value, hidden) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, below := range n.Content {
		quoteHidden(below)
	}
}

func hidden(r rune) bool { return r != '\t' && r != '\n' && visible.Hidden(r) }

// escaped puts escapes in the place of characters that aren't shown.
func escaped(text string, escape func(rune) string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// WriteJSON writes a result as indented JSON.
func (a *Program) WriteJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	// They are in strings alone: what is shown is what it says.
	_, err := io.WriteString(a.Out, escaped(b.String(), func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}))
	return err
}

package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// decode parses YAML. doc is nil when there is none; second is what follows a
// first document.
func decode(data []byte) (doc, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var a, b yaml.Node
	if err := dec.Decode(&a); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	if err := dec.Decode(&b); errors.Is(err, io.EOF) {
		return &a, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	return &a, &b, nil
}

// proseQuoted puts quotes around a description of one line that holds a colon.
// Claude Code reads such files, and many have it; in our own form it stays an
// error.
func (f *file) proseQuoted(data []byte) (text []byte, line int, ok bool) {
	if f.dialect != ClaudeAgent && f.dialect != AgentSkill {
		return nil, 0, false
	}
	const key = "description: "
	lines := strings.SplitAfter(string(data), "\n")
	for i, l := range lines {
		value, found := strings.CutPrefix(strings.TrimRight(l, " \t\r\n"), key)
		if !found || value == "" || !strings.Contains(value, ": ") || strings.ContainsAny(value[:1], "\"'[{|>&*!%@`#") {
			continue
		}
		quoted, err := json.Marshal(value) // a JSON string is a YAML string
		if err != nil {
			return nil, 0, false
		}
		lines[i] = key + string(quoted) + "\n"
		return []byte(strings.Join(lines, "")), i + 1, true
	}
	return nil, 0, false
}

func (f *file) errorRange(err error, from int) diag.Range {
	var le *yaml.LoadError
	if errors.As(err, &le) && le.Mark.Line > 0 {
		at := f.offset(le.Mark.Line+f.first, max(1, le.Mark.Column))
		return f.span(at, f.lineEnd(at))
	}
	return f.span(from, f.lineEnd(from))
}

func yamlMessage(err error) string {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return strings.TrimSuffix(le.Message, ".")
	}
	return err.Error()
}

func (f *file) yamlHint(err error, at diag.Range) string {
	switch m := yamlMessage(err); {
	case strings.Contains(m, "cannot start any token"), strings.Contains(m, "tab character"):
		return "indent with spaces, not tabs, and put quotes around text that begins with a special character"
	case strings.Contains(m, "mapping values are not allowed"):
		// Prose with a colon: what most files that fail here have.
		begin := f.offset(at.Start.Line, 1)
		key, value, ok := strings.Cut(string(f.data[begin:f.lineEnd(begin)]), ": ")
		if value = strings.TrimSpace(value); ok && value != "" && len(value) <= 120 && !strings.ContainsAny(key, "\"'[{ ") && !strings.ContainsAny(value[:1], "\"'[{|>&*!") {
			return "put quotes around text that holds a colon: " + key + ": " + strconv.Quote(value)
		}
		return "put quotes around text that holds a colon, or write it below the key, indented, after `|`"
	}
	return ""
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		return fmt.Sprintf("%q", shorten(n.Value))
	}
	return "nothing"
}

func shorten(s string) string { return clip.Runes(s, 40) }

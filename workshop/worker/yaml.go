package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/yamltext"
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

// listKeys may have a list of tools as text, in which an entry has no quotes.
var listKeys = map[string]bool{"allowed-tools": true, "tools": true, "disallowed-tools": true, "disallowedTools": true}

// badYAML reports why the keys, between two bytes, can't be read.
func (f *file) badYAML(err error, from, to int) {
	var le *yaml.LoadError
	if !errors.As(err, &le) || le.Mark.Line == 0 {
		f.report(diag.Error, "worker-yaml", f.span(from, f.lineEnd(from)), "", "the keys are not valid YAML: %v", err)
		return
	}
	mark := func(m yaml.Mark) yamltext.Mark { return yamltext.Mark{Line: m.Line, Column: m.Column} }
	slip := yamltext.Explain(f.data[from:to], le.Message, mark(le.Mark), mark(le.ContextMark))
	at := f.offset(slip.At.Line+f.first, max(1, slip.At.Column))
	if strings.Contains(le.Message, "tab character") || at < len(f.data) && f.data[at] == '\t' {
		slip = yamltext.Slip{Summary: "a tab can't indent YAML", Hint: "indent with spaces"}
	}
	line := strings.TrimRight(string(f.data[f.offset(f.pos(at).Line, 1):f.lineEnd(at)]), "\r\n ")
	if key, list, ok := strings.Cut(line, ": "); ok && listKeys[key] && strings.ContainsAny(list[:min(len(list), 1)], `"'`) {
		slip.Hint = "write `" + key + ": " + unquoted(list) + "`"
	}
	if slip.Summary == "" {
		slip.Summary = "the keys are not valid YAML: " + yamlMessage(err)
	}
	f.report(diag.Error, "worker-yaml", f.span(at, f.lineEnd(at)), slip.Hint, "%s", slip.Summary)
}

func yamlMessage(err error) string {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return strings.TrimSuffix(le.Message, ".")
	}
	return err.Error()
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

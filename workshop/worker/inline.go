package worker

import (
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
)

// Inline is a worker that workshop.yaml defines itself, as an item of `workers:`.
type Inline struct {
	Name, Description, Instructions, Model string
	// Tools is the list of tools, as one or several texts, and ToolsKey the key that
	// has it.
	Tools    []Text
	ToolsKey string
	// DelegatesTo are names of workers, as one or several texts.
	DelegatesTo []Text
	// ResultFile is the path of a JSON Schema, relative to workshop.yaml.
	ResultFile Reference
	Source     diag.Source
}

// Text is text of a file with its place.
type Text struct {
	Value string
	At    diag.Range
}

// part is the place of some bytes of the value, where the file has it letter by letter
// on one line; else that of all of it.
func (t Text) part(from, to int) diag.Range {
	if t.At.End.Byte-t.At.Start.Byte != len(t.Value) || t.At.Start.Line != t.At.End.Line {
		return t.At
	}
	at := func(n int) diag.Pos {
		p := t.At.Start
		p.Byte += n
		p.Column += utf8.RuneCountInString(t.Value[:n])
		return p
	}
	return diag.Range{Filename: t.At.Filename, Start: at(from), End: at(to)}
}

// Definition reads the lists as those of a worker file are read. All problems are
// reported at once; the Definition is of use only when none of them is an error.
func (w Inline) Definition() (Definition, diag.List) {
	f := &file{text: newText(w.Source.Range.Filename, nil), dialect: InlineWorker}
	f.def = Definition{
		Name: w.Name, Description: w.Description, Dialect: InlineWorker,
		Instructions: instructions([]byte(w.Instructions)), Model: w.Model, ResultFile: w.ResultFile, Source: w.Source,
	}
	f.offer(&field{name: w.ToolsKey, texts: w.Tools})
	f.delegates(&field{name: "delegates-to", texts: w.DelegatesTo})
	return f.def, f.told()
}

// textOf is a list of texts as YAML.
func textOf(texts []Text) string {
	var all []string
	for _, t := range texts {
		all = append(all, t.Value)
	}
	return strings.Join(all, ", ") + "\n"
}

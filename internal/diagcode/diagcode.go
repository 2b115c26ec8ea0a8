// Package diagcode explains the codes of diagnostics: what each means, an
// example with the slip, and the lines to write. `workshop explain` prints it.
//
// It is pure data, in the Markdown files of this directory: a heading for each
// code, then the meaning, then fenced blocks. The word after a block's language
// says what the block is: a file of the example, "example" for commands that
// lead there, "write" for the remedy. Without a word it is workshop.yaml, of
// which the keys that don't matter are left out.
package diagcode

import (
	"embed"
	"io/fs"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

//go:embed *.md
var texts embed.FS

// Entry explains one code.
type Entry struct {
	Code    string  `json:"code"`
	Meaning string  `json:"meaning"`           // paragraphs, with empty lines between them
	Example []Block `json:"example,omitempty"` // files with the slip, or commands that lead there
	Write   []Block `json:"write"`             // lines or commands to write instead
}

// Block is a part of a file, or commands.
type Block struct {
	File string `json:"file,omitempty"` // relative to the project; empty: commands, or a file that the text names
	Text string `json:"text"`
}

// All returns the entries in the order of their codes.
var All = sync.OnceValue(func() []Entry {
	names, err := fs.Glob(texts, "*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var all []Entry
	for _, name := range names {
		text, err := fs.ReadFile(texts, name)
		if err != nil {
			panic(err) // it is embedded
		}
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			all = append(all, parse(section))
		}
	}
	sortfunc.Stable(all, func(a, b Entry) int { return strings.Compare(a.Code, b.Code) })
	return all
})

// Of returns the entry of a code.
func Of(code string) (Entry, bool) {
	for _, e := range All() {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}

// parse reads what follows "## ".
func parse(section string) Entry {
	parts := strings.Split(section, "```")
	code, meaning, _ := strings.Cut(parts[0], "\n")
	e := Entry{Code: code, Meaning: strings.TrimSpace(meaning)}
	for i := 1; i < len(parts); i += 2 { // between fences there is only white space
		info, text, _ := strings.Cut(parts[i], "\n")
		language, what, _ := strings.Cut(info, " ")
		switch what {
		case "write":
			e.Write = append(e.Write, Block{Text: text})
		case "example":
			e.Example = append(e.Example, Block{Text: text})
		case "":
			if language == "yaml" {
				what = "workshop.yaml"
			}
			fallthrough
		default:
			e.Example = append(e.Example, Block{File: what, Text: text})
		}
	}
	return e
}

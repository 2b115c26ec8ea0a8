package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/tool"
)

// How much of a call is shown, in bytes.
const (
	maxLine    = 16 << 10 // of a command and its standard input
	maxContent = 2 << 10  // of what is written
	maxArgs    = 8 << 10  // of arguments of unknown tools
)

// textOf writes a call for a person; cut reports that it isn't all of it.
func textOf(c Call) (text string, cut bool) {
	var w writer
	switch c.Tool {
	case tool.Shell:
		var a tool.ShellArgs
		if tool.Decode(c.Args, &a) == nil && (a.Command == "" || len(a.Argv) == 0) {
			w.shell(a)
			break
		}
		w.json(c.Args)
	case tool.WriteFile:
		var a tool.WriteFileArgs
		if tool.Decode(c.Args, &a) == nil {
			w.field("", a.Path)
			if a.Executable {
				w.field("made executable", "")
			}
			if a.Binary {
				w.field("the content is base64", "")
			}
			w.content("content", a.Content, maxContent)
			break
		}
		w.json(c.Args)
	case tool.EditFile:
		var a tool.EditFileArgs
		if tool.Decode(c.Args, &a) == nil {
			w.field("", a.Path)
			if a.ReplaceAll {
				w.field("every occurrence", "")
			}
			w.content("replaces", a.OldString, maxContent)
			w.content("by", a.NewString, maxContent)
			break
		}
		w.json(c.Args)
	case tool.FetchURL:
		var a tool.FetchURLArgs
		if tool.Decode(c.Args, &a) == nil {
			w.field("", a.URL)
			// What is before an @, or is shortened, hides where it goes.
			if u, err := url.Parse(a.URL); err == nil && (w.cut || u.User != nil) {
				w.field("to the host", u.Host)
			}
			break
		}
		w.json(c.Args)
	default:
		w.json(c.Args)
	}
	return strings.TrimSuffix(w.String(), "\n"), w.cut
}

// Headline says who wants what: "counter wants shell (for reviewer)".
func (q Question) Headline() string {
	text := shown(q.Call.Worker) + " wants " + shown(q.Call.Tool)
	if len(q.Call.Chain) == 0 {
		return text
	}
	names := make([]string, len(q.Call.Chain))
	for i, n := range q.Call.Chain {
		names[i] = shown(n)
	}
	return text + " (for " + strings.Join(names, ", for ") + ")"
}

type writer struct {
	strings.Builder
	cut bool
}

func (w *writer) lines(s string, max int) {
	s, cut := shorten(s, max)
	w.cut = w.cut || cut
	w.WriteString(fold(shownLines(s)))
	w.WriteByte('\n')
}

func (w *writer) field(name, value string) {
	value, cut := shorten(value, maxContent)
	w.cut = w.cut || cut
	switch {
	case name == "":
	case value == "":
		w.WriteString("(" + name + ")")
	default:
		w.WriteString(name + ": ")
	}
	w.WriteString(shown(value) + "\n")
}

func (w *writer) content(name, s string, max int) {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	fmt.Fprintf(w, "%s (%s, %s):\n", name, count(n, "line"), count(len(s), "byte"))
	if s == "" {
		return
	}
	var inner writer
	inner.lines(strings.TrimSuffix(s, "\n"), max)
	w.cut = w.cut || inner.cut
	for line := range strings.Lines(inner.String()) {
		w.WriteString("    " + line)
	}
}

func (w *writer) shell(a tool.ShellArgs) {
	if a.Command != "" {
		w.lines(a.Command, maxLine)
	} else {
		words := make([]string, len(a.Argv))
		for i, s := range a.Argv {
			words[i] = shellquote.Quote(s)
		}
		w.lines(strings.Join(words, " "), maxLine)
	}
	if a.Cwd != "" {
		w.field("in the directory", a.Cwd)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		w.field("with the variable", name+"="+a.Env[name])
	}
	if a.Stdin != "" {
		w.content("standard input", a.Stdin, maxLine) // it may be a program
	}
}

// json shows arguments as they were sent.
func (w *writer) json(args json.RawMessage) {
	var b bytes.Buffer
	if json.Indent(&b, args, "", "  ") != nil {
		b.Reset()
		b.Write(args)
	}
	if s := strings.TrimSpace(b.String()); s != "" && s != "{}" {
		w.lines(s, maxArgs)
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

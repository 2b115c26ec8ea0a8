package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/tool"
)

// render makes what a model reads of the result of one of our tools: plain text
// as a person would see it. The result itself is Structured.
// reads: the model has read_file for what is not in it.
func render(name string, raw json.RawMessage, reads bool) *Result {
	r := &Result{Structured: raw, Rendered: true}
	text := ""
	switch name {
	case tool.Shell:
		text = read(raw, func(v *tool.ShellResult) string {
			r.exitCode, r.shell = &v.ExitCode, v
			return shellText(v, reads)
		})
	case tool.ReadFile:
		text = read(raw, func(v *tool.ReadFileResult) string { return noted(readText(v), v.Note) })
	case tool.WriteFile:
		text = read(raw, func(v *tool.WriteFileResult) string { return noted(writeText(v), v.Note) })
	case tool.EditFile:
		text = read(raw, func(v *tool.EditFileResult) string { return noted(editText(v), v.Note) })
	case tool.ListFiles:
		text = read(raw, func(v *tool.ListFilesResult) string { return noted(listText(v), v.Note) })
	case tool.SearchFiles:
		text = read(raw, func(v *tool.SearchFilesResult) string { return noted(searchText(v), v.Note) })
	case tool.FetchURL:
		text = read(raw, fetchText)
	}
	if text == "" {
		text = string(raw)
	}
	r.Content = []json.RawMessage{textBlock(text)}
	return r
}

// noted adds the note of a result, if it has one.
func noted(text, note string) string {
	if text == "" || note == "" {
		return text
	}
	l := &lines{}
	l.add(text)
	l.addf("[%s]", note)
	return l.String()
}

// read makes the text of a result; "" where it isn't what was expected. It reads
// the result once: a megabyte takes longer to read than to carry.
func read[T any](raw json.RawMessage, text func(*T) string) string {
	v := new(T)
	if json.Unmarshal(raw, v) != nil {
		return ""
	}
	return text(v)
}

// textBlock is a content block of MCP.
func textBlock(text string) json.RawMessage {
	b, _ := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", strings.ToValidUTF8(text, "\uFFFD")})
	return b
}

// lines joins parts, each on lines of its own.
type lines struct{ b strings.Builder }

func (l *lines) add(text string) {
	if text == "" {
		return
	}
	if s := l.b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		l.b.WriteByte('\n')
	}
	l.b.WriteString(text)
}

func (l *lines) addf(format string, a ...any) { l.add(fmt.Sprintf(format, a...)) }

func (l *lines) String() string { return l.b.String() }

func shellText(r *tool.ShellResult, reads bool) string {
	l := &lines{}
	l.add(shown(r.Stdout))
	l.add(outputNote("stdout", r.Stdout, reads))
	if r.Stderr.Bytes > 0 {
		l.add("[stderr]")
		l.add(shown(r.Stderr))
		l.add(outputNote("stderr", r.Stderr, reads))
	}
	switch {
	case r.TimedOut:
		l.addf("[timed out after %.1f s; all that it started was killed]", float64(r.DurationMS)/1000)
	case r.Signal != "":
		l.addf("[ended by %s]", r.Signal)
	case r.ExitCode != 0:
		l.addf("[exit code %d]", r.ExitCode)
	case r.Stdout.Bytes == 0 && r.Stderr.Bytes == 0:
		l.add("[exit code 0, no output]")
	}
	if r.Note != "" {
		for note := range strings.SplitSeq(r.Note, "\n") {
			l.addf("[%s]", note)
		}
	}
	return l.String()
}

func outputNote(stream string, o tool.Output, reads bool) string {
	var notes []string
	switch {
	case o.Text != "" && shown(o) == "":
		notes = append(notes, fmt.Sprintf("%s: %s that are not text, not shown", stream, bytesText(o.Bytes)))
		if o.File == "" {
			notes = append(notes, "to see them, pipe them through base64 or od")
		} else {
			o.NextLine, o.NextOffset = 0, 0 // from its beginning
			notes = append(notes, whereRest(o, reads))
		}
		return "[" + strings.Join(notes, "; ") + "]"
	case o.Omitted > 0:
		notes = append(notes, fmt.Sprintf("%s: %d of %d bytes left out", stream, o.Omitted, o.Bytes), whereRest(o, reads))
	}
	if o.Binary {
		notes = append(notes, stream+" is not all text: bytes that are not UTF-8 are replaced")
	}
	if len(notes) == 0 {
		return ""
	}
	return "[" + strings.Join(notes, "; ") + "]"
}

// whereRest says how to see what was left out of an output: with read_file, or with
// programs of the shell where that is all the model has.
func whereRest(o tool.Output, reads bool) string {
	if o.File == "" {
		return "filter the output, or set max_output_bytes"
	}
	what := "the whole output is"
	if o.FileOmitted > 0 {
		what = fmt.Sprintf("not the whole output, but its first and last %d bytes are", (o.Bytes-o.FileOmitted)/2)
	}
	how := ""
	switch {
	case !reads && o.NextLine > 0:
		how = fmt.Sprintf("tail -n +%d", o.NextLine)
	case !reads:
		how = fmt.Sprintf("tail -c +%d", o.NextOffset+1)
	case o.NextLine > 0:
		how = fmt.Sprintf("read_file with first_line %d", o.NextLine)
	default:
		how = fmt.Sprintf("read_file with binary and offset %d", o.NextOffset)
	}
	return fmt.Sprintf("%s in %s until the session ends: use %s", what, diagtext.Printable(o.File), how)
}

// unreadable reports whether a text is of bytes that are not text, from a tenth
// of its characters on.
func unreadable(text string) bool {
	all, bad := 0, 0
	for _, r := range text {
		if all++; r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\n\r\x1b\b", r) {
			bad++
		}
	}
	return bad*10 > all
}

// shown is what a model sees of an output: nothing of many bytes that it can't
// read.
func shown(o tool.Output) string {
	const few = 200
	if o.Binary && o.Bytes > few && unreadable(o.Text) {
		return ""
	}
	return o.Text
}

func readText(r *tool.ReadFileResult) string {
	l := &lines{}
	switch {
	case r.Binary:
		l.addf("[base64 of %s, %s]", r.Path, bytesText(r.Size))
	case r.Content == "" && r.Size == 0:
		l.addf("[%s is empty]", r.Path)
	case r.Content == "":
		l.addf("[%s has no such lines; it has %s]", r.Path, bytesText(r.Size))
	}
	l.add(r.Content)
	switch {
	case r.Note != "": // it says how the file goes on
	case r.Truncated && r.NextLine > 0:
		l.addf("[the file goes on; read it with first_line %d]", r.NextLine)
	case r.Truncated:
		l.addf("[the file goes on; it has %s]", bytesText(r.Size))
	}
	return l.String()
}

func writeText(r *tool.WriteFileResult) string {
	if r.Created {
		return fmt.Sprintf("Made %s, %s.", r.Path, bytesText(r.Bytes))
	}
	return fmt.Sprintf("Wrote %s, %s.", r.Path, bytesText(r.Bytes))
}

// bytesText is "1 byte", "2 bytes".
func bytesText(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

func editText(r *tool.EditFileResult) string {
	what, lines := "line", slices.Compact(slices.Clone(r.Lines))
	if len(lines) > 1 {
		what = "lines"
	}
	text := fmt.Sprintf("Replaced %d in %s", r.Replacements, r.Path)
	if len(r.Lines) > 0 {
		text += fmt.Sprintf(", %s %s", what, strings.Trim(strings.ReplaceAll(fmt.Sprint(lines), " ", ", "), "[]"))
		if r.Replacements > len(r.Lines) {
			text += " …"
		}
	}
	return text + "."
}

// escapedNote is for paths with escapes, which no tool takes so: a file may have such
// a name.
const escapedNote = `[\x… and \u… in a path stand for characters that aren't seen: tools take the characters]`

// listText has a name on each line: what would end the line, or drive a terminal,
// is an escape, so that no name looks like two.
func listText(r *tool.ListFilesResult) string {
	l := &lines{}
	escaped := false
	for _, e := range r.Entries {
		path := diagtext.Printable(e.Path)
		escaped = escaped || path != e.Path
		switch e.Type {
		case "directory":
			path += "/"
		case "symlink":
			path += " -> " + diagtext.Printable(e.Target)
		}
		l.add(path)
	}
	if escaped {
		l.add(escapedNote)
	}
	if len(r.Entries) == 0 {
		l.addf("[nothing in %s]", r.Path)
	}
	if r.Truncated {
		l.addf("[there are more than %s]", theseText(len(r.Entries)))
	}
	return l.String()
}

// searchText is as grep writes it.
func searchText(r *tool.SearchFilesResult) string {
	l := &lines{}
	escaped := false
	for i, m := range r.Matches {
		path := diagtext.Printable(m.Path)
		escaped, m.Path = escaped || path != m.Path, path
		if m.Line == 0 {
			l.add(m.Path)
			continue
		}
		context := len(m.Before) > 0 || len(m.After) > 0
		if context && i > 0 {
			l.add("--")
		}
		for j, b := range m.Before {
			l.addf("%s-%d-%s", m.Path, m.Line-len(m.Before)+j, b)
		}
		l.addf("%s:%d:%s", m.Path, m.Line, m.Text)
		for j, a := range m.After {
			l.addf("%s-%d-%s", m.Path, m.Line+1+j, a)
		}
	}
	if escaped {
		l.add(escapedNote)
	}
	if len(r.Matches) == 0 {
		l.addf("[no match; files searched: %d]", r.FilesSearched)
	}
	if r.Truncated {
		l.addf("[there may be more than %s]", theseText(len(r.Matches)))
	}
	return l.String()
}

// theseText is "this one", "these 2".
func theseText(n int) string {
	if n == 1 {
		return "this one"
	}
	return fmt.Sprintf("these %d", n)
}

func fetchText(r *tool.FetchURLResult) string {
	l := &lines{}
	head := fmt.Sprintf("HTTP %d", r.Status)
	if r.ContentType != "" {
		head += ", " + r.ContentType
	}
	l.add(head + ", " + r.URL)
	switch {
	case r.Binary:
		l.add("[base64]")
	case r.Body == "":
		l.add("[no body]")
	}
	if r.Body != "" {
		l.b.WriteString("\n\n" + r.Body)
	}
	if r.Truncated {
		l.add("[the body goes on]")
	}
	return l.String()
}

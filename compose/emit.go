package compose

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// emitter writes YAML by hand: a hundred times faster than a marshaller, and
// each line can say where it comes from. It writes what Compose v2 and
// docker-compose 1.29 (a YAML 1.1 reader) understand alike.
type emitter struct {
	b       []byte
	origins map[string]diag.Source
	// key holds "services.NAME." and is the scratch space of look-ups.
	key []byte
}

// within makes the paths of the following lines relative to prefix.
func (e *emitter) within(prefix string) { e.key = append(e.key[:0], prefix...) }

// source looks up where the value at path was written.
func (e *emitter) source(at string) diag.Source {
	n := len(e.key)
	e.key = append(e.key, at...)
	src := e.origins[string(e.key)] // no allocation
	e.key = e.key[:n]
	return src
}

// raw writes a line as it is.
func (e *emitter) raw(indent int, text string) {
	e.indent(indent)
	e.b = append(append(e.b, text...), '\n')
}

func (e *emitter) indent(n int) {
	for range n {
		e.b = append(e.b, ' ')
	}
}

// value writes "name: value" where the value is a string of a user or ours.
func (e *emitter) value(indent int, name, at, value string) {
	src := e.source(at)
	e.indent(indent)
	e.b = append(appendPlain(e.b, name), ": "...)
	e.scalar(value, src)
}

// quiet writes "name: value" without naming the place: a line above did.
func (e *emitter) quiet(indent int, name, at, value string) {
	e.indent(indent)
	e.b = append(appendPlain(e.b, name), ": "...)
	e.scalar(value, diag.Source{Template: e.source(at).Template})
}

// plain writes "name: value" where the value needs no quotes: a number, a
// boolean, a size.
func (e *emitter) plain(indent int, name, at, value string) {
	src := e.source(at)
	e.indent(indent)
	e.b = append(appendPlain(e.b, name), ": "...)
	if src.Template != "" {
		e.b = appendQuoted(e.b, src.Template)
	} else {
		e.b = append(e.b, value...)
	}
	e.end(src)
}

// item writes "- value".
func (e *emitter) item(indent int, at, value string) {
	src := e.source(at)
	e.indent(indent)
	e.b = append(e.b, "- "...)
	e.scalar(value, src)
}

func (e *emitter) scalar(value string, src diag.Source) {
	if src.Template != "" {
		e.b = appendQuoted(e.b, src.Template)
	} else {
		e.b = appendPlain(e.b, diag.Literal(value))
	}
	e.end(src)
}

// end finishes a line with the place that it comes from.
func (e *emitter) end(src diag.Source) {
	if src.Range.Start.Line > 0 {
		e.b = append(e.b, " # "...)
		e.b = appendPlace(e.b, src)
	}
	e.b = append(e.b, '\n')
}

// flow writes a list of our own words on one line.
func (e *emitter) flow(indent int, name string, words []string) {
	if len(words) == 0 {
		return
	}
	e.indent(indent)
	e.b = append(append(e.b, name...), ": ["...)
	for i, w := range words {
		if i > 0 {
			e.b = append(e.b, ", "...)
		}
		e.b = appendPlain(e.b, diag.Literal(w))
	}
	e.b = append(e.b, "]\n"...)
}

// duration in the form that Compose reads.
func duration(d time.Duration) string { return d.String() }

// appendPlace writes file and line. A file of the project is written without its
// directory: generated files do not depend on where the workshop is.
func appendPlace(b []byte, src diag.Source) []byte {
	name := src.Range.Filename
	if !strings.Contains(name, "://") { // else of another repository
		name = path.Base(name)
	}
	b = append(b, cleanComment(name)...)
	b = append(b, ':')
	return strconv.AppendInt(b, int64(src.Range.Start.Line), 10)
}

// cleanComment keeps a comment on its line.
func cleanComment(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, s)
}

func unprintable(r rune) bool { return r == '\n' || !yamltext.Shown(r) }

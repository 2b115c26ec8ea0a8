package mcpconfig

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

const (
	// MaxSize of a file, in bytes.
	MaxSize = 1 << 20
	// maxParts is how many lists and values a file may have, about. So it bounds how deep
	// they nest, which parsers follow by calls, and the keys of TOML, which its parser
	// compares one by one.
	maxParts = 10_000
)

// DifferentError means that a file has another server of the name.
type DifferentError struct{ Name string }

func (e *DifferentError) Error() string { return fmt.Sprintf("has another server %s", e.Name) }

// Add returns the text of the client's file with the server; an empty one is that of a
// file that isn't there. A text that has the server stays as it is. Another server of
// the name is a [DifferentError], unless replace.
func (c Client) Add(text []byte, name string, s Server, replace bool) ([]byte, error) {
	if err := c.Check(s); err != nil {
		return nil, err
	}
	return c.edit(text, name, func(f file) ([]splice, error) {
		switch old, there := f.servers()[name]; {
		case there && same(old, f.value(s)):
			return nil, nil
		case there && !replace:
			return nil, &DifferentError{name}
		case there:
			return f.replace(name, s)
		}
		return f.add(name, s)
	}, func(f file) bool { return same(f.servers()[name], f.value(s)) })
}

// Remove returns the text without a server; one without it stays as it is.
func (c Client) Remove(text []byte, name string) ([]byte, error) {
	return c.edit(text, name, func(f file) ([]splice, error) {
		if _, there := f.servers()[name]; !there {
			return nil, nil
		}
		return f.remove(name)
	}, func(f file) bool { _, there := f.servers()[name]; return !there })
}

// file is a configuration file in one of the formats.
type file interface {
	// content is the whole file as values of maps and lists.
	content() map[string]any
	// servers are those of the file by name; nil for none.
	servers() map[string]any
	// value is a server as servers has it.
	value(Server) any

	add(name string, s Server) ([]splice, error)
	replace(name string, s Server) ([]splice, error)
	remove(name string) ([]splice, error)
}

// splice replaces bytes of a text.
type splice struct {
	from, to int
	text     string
}

// edit applies a change and makes sure that nothing else changes by it.
func (c Client) edit(text []byte, name string, change func(file) ([]splice, error), done func(file) bool) ([]byte, error) {
	if err := c.check(text); err != nil {
		return nil, err
	}
	before, err := c.parse(text)
	if err != nil {
		return nil, err
	}
	splices, err := change(before)
	if err != nil || len(splices) == 0 {
		return text, err
	}
	sortfunc.Stable(splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range splices {
		if s.from < at || s.to < s.from || s.to > len(text) {
			return nil, errNotEdited
		}
		out = append(append(out, text[at:s.from]...), s.text...)
		at = s.to
	}
	out = append(out, text[at:]...)
	after, err := c.parse(out)
	if err != nil || !done(after) || !reflect.DeepEqual(others(c, before, name), others(c, after, name)) {
		return nil, errNotEdited
	}
	return out, nil
}

var errNotEdited = fmt.Errorf("can't be edited without changing other parts of it; edit it by hand")

// others is what a file has beside one server.
func others(c Client, f file, name string) map[string]any {
	out, servers := maps.Clone(f.content()), maps.Clone(f.servers())
	delete(servers, name)
	if out == nil {
		out = map[string]any{}
	}
	if delete(out, c.Key); len(servers) > 0 {
		out[c.Key] = servers
	}
	return out
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// check refuses a file that would take too long to read (B60).
func (c Client) check(text []byte) error {
	if len(text) > MaxSize {
		return fmt.Errorf("has more than %d bytes", MaxSize)
	}
	parts := "[{,"
	if c.toml {
		parts = "[{,="
	}
	n := 0
	for _, p := range []byte(parts) {
		n += bytes.Count(text, []byte{p})
	}
	if n > maxParts {
		return fmt.Errorf("has %d lists and values, more than %d", n, maxParts)
	}
	return nil
}

func (c Client) parse(text []byte) (file, error) {
	if c.toml {
		return parseTOML(text, c.Key)
	}
	return parseJSON(text, c.Key)
}

// newline is how a text ends its lines.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

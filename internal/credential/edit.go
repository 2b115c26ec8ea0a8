package credential

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// ErrExists, of [Add], and ErrAbsent, of [Remove], say that the text has the credential
// already, or hasn't.
var (
	ErrExists = errors.New("the credential exists already")
	ErrAbsent = errors.New("there is no such credential")
)

// ByHandError says that a text is written in a way that can't be edited here.
type ByHandError struct {
	First, Last int // lines to remove; 0: Line is to be added
	Line        string
}

func (e *ByHandError) Error() string {
	const way = "the file is written in a way that can't be edited here"
	switch {
	case e.First == 0:
		return fmt.Sprintf("%s: add the line `%s` by hand", way, e.Line)
	case e.First == e.Last:
		return fmt.Sprintf("%s: remove line %d by hand", way, e.First)
	}
	return fmt.Sprintf("%s: remove the lines %d to %d by hand", way, e.First, e.Last)
}

// Add returns a valid text with a line for c at its end. Every byte that was there stays;
// the result is parsed again, and has c and what it had before.
func Add(data []byte, home string, c Credential) ([]byte, error) {
	before, list := Parse("", data, home)
	if list.HasErrors() {
		return nil, list
	}
	if slices.ContainsFunc(before, func(x Credential) bool { return x.Name == c.Name }) {
		return nil, ErrExists
	}
	line := c.Text(home)
	if alone, wrong := Parse("", []byte(line+"\n"), home); len(wrong) > 0 || len(alone) != 1 || !same(alone[0], c) {
		if len(wrong) > 0 {
			return nil, errors.New(wrong[0].Summary)
		}
		return nil, fmt.Errorf("it can't be written as YAML: %s", line)
	}
	byHand := &ByHandError{Line: line}
	end := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		end = "\r\n"
	}
	depth := 0
	if len(before) > 0 {
		root, err := mappingOf(data)
		if err != nil {
			return nil, byHand
		}
		depth = root.Content[0].Column - 1
	}
	out := slices.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, end...)
	}
	out = append(append(append(out, bytes.Repeat([]byte(" "), depth)...), line...), end...)
	if after, list := Parse("", out, home); len(list) > 0 || !sameAll(after, append(before, c)) {
		return nil, byHand
	}
	return out, nil
}

// Remove returns a valid text without the lines of a credential. Every other byte stays,
// comments above it too; the result is parsed again, and has the other credentials.
func Remove(data []byte, home, name string) ([]byte, error) {
	before, list := Parse("", data, home)
	if list.HasErrors() {
		return nil, list
	}
	at := slices.IndexFunc(before, func(x Credential) bool { return x.Name == name })
	if at < 0 {
		return nil, ErrAbsent
	}
	root, err := mappingOf(data)
	if err != nil {
		return nil, &ByHandError{First: before[at].Line, Last: before[at].Line}
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	first, last := linesOf(root, lines, name)
	out := slices.Concat(slices.Concat(lines[:first-1]...), slices.Concat(lines[last:]...))
	after, list := Parse("", out, home)
	if len(list) > 0 || !sameAll(after, slices.Delete(before, at, at+1)) {
		return nil, &ByHandError{First: first, Last: last}
	}
	return out, nil
}

// mappingOf returns the mapping that a text is, if each key begins a line of its own.
func mappingOf(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yamltext.Load(data, &doc, maxDepth); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 || len(root.Content) == 0 {
		return nil, errors.New("not a block mapping")
	}
	return root, nil
}

// linesOf returns the first and the last line of an entry. Blank lines and comments after
// it are not part of it, unless they are indented as what is below its key.
func linesOf(root *yaml.Node, lines [][]byte, name string) (first, last int) {
	depth := root.Content[0].Column - 1
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != name {
			continue
		}
		first, last = root.Content[i].Line, len(lines)
		if i+2 < len(root.Content) {
			last = root.Content[i+2].Line - 1
		}
		break
	}
	for last > first {
		line := lines[last-1]
		text := bytes.TrimLeft(line, " ")
		mark := bytes.HasPrefix(line, []byte("..."))
		if rest := bytes.TrimSpace(text); !mark && len(rest) > 0 && (rest[0] != '#' || len(line)-len(text) > depth) {
			break
		}
		last--
	}
	return first, last
}

// same reports whether two credentials are equal but for their places.
func same(a, b Credential) bool {
	a.Line, b.Line = 0, 0
	return reflect.DeepEqual(a, b)
}

// sameAll is same for all, in any order.
func sameAll(a, b []Credential) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.ContainsFunc(b, func(y Credential) bool { return same(x, y) }) {
			return false
		}
	}
	return true
}

package edit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// Line is one line of network.allow or network.deny.
type Line struct {
	// Worker whose own network gets the line; "" is the workshop's network.
	Worker string
	// Deny makes it a line of deny; else it is one of allow.
	Deny bool
	// Text as it is written, a YAML value on one line: `api.github.com`,
	// `"*.example.org"`, `{host: db.internal, port: 5432, private: true}`.
	Text string
	// Comment is put after the line as `# …` and is one line of text; may be
	// empty. A list on one line has no place for it, there it is left out.
	Comment string
}

// ErrInherits is what an [*Error] wraps for a worker that has no list of its
// own: what the workshop's network says is what counts for it.
var ErrInherits = errors.New("the workshop's network applies")

// ErrNoNetwork is what an [*Error] wraps for a workshop without the container, network or
// mode that the line would be for: its base may have them.
var ErrNoNetwork = errors.New("the workshop has no such network")

// errNoWorker is what an [*Error] wraps for a worker that the text doesn't name.
var errNoWorker = errors.New("there is no such worker")

// Error says why a file isn't edited, and what to write by hand.
type Error struct {
	Line    int // of the file, from 1; 0 is the whole file
	Summary string
	Hint    string
	err     error
}

// Error is one line: where, what, and what to do.
func (e *Error) Error() string {
	s := e.Summary
	if e.Line > 0 {
		s = fmt.Sprintf("line %d: %s", e.Line, s)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns [ErrInherits] or [ErrNoNetwork] where that is the reason.
func (e *Error) Unwrap() error { return e.err }

// limits as of package workshop, which refuses what is beyond.
const (
	maxSize  = 1 << 20
	maxDepth = 64
)

// Add returns the text of a workshop.yaml with the lines in it. A line that is
// already there is not a change. Only the form of a line is checked: whether its
// host is one, and whether a worker's line is covered by its workshop, is for
// workshop.Load to say about the result. The error is an [*Error]; then
// nothing was added.
func Add(src []byte, lines ...Line) ([]byte, error) {
	out := bytes.Clone(src)
	for _, l := range lines {
		var err error
		if out, err = add(out, l); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Inheriting returns those of the workers for which [Add] of the line would be
// [ErrInherits], and those that the text doesn't name, as they come from elsewhere; none
// where the text can't be edited. The line's own worker doesn't
// matter.
func Inheriting(src []byte, l Line, workers []string) (names []string) {
	item, err := l.parse()
	if err != nil {
		return nil
	}
	f, err := parse(src)
	if err != nil {
		return nil
	}
	for _, l.Worker = range workers {
		// An edit changes the tree at its worker alone.
		e := &editor{file: f, line: l, item: item}
		if err := e.edit(); errors.Is(err, ErrInherits) || errors.Is(err, errNoWorker) {
			names = append(names, l.Worker)
		}
	}
	return names
}

// ItemOf returns the line of a worker's item below `workers`, and whether it is a mapping,
// which can have further keys; 0 where the file has none.
func ItemOf(src []byte, worker string) (line int, mapping bool) {
	_, item, err := ownerOf(src, worker)
	at := new(Error)
	switch {
	case err == nil && item != nil:
		return item.Line, true
	case errors.Is(err, ErrInherits) && errors.As(err, &at):
		return at.Line, false
	}
	return 0, false
}

// NetworkOf returns the line of the network of a worker, "" for the workshop's own, and its
// mode where that is all that it has: `network: restricted`. 0 is none.
func NetworkOf(src []byte, worker string) (line int, mode string) {
	e, owner, err := ownerOf(src, worker)
	if err != nil || owner == nil {
		return 0, ""
	}
	c, err := e.lookup(owner, "container")
	if err != nil || c.value == nil {
		return 0, ""
	}
	n, err := e.lookup(c.value, "network")
	switch {
	case err != nil || n.value == nil:
		return 0, ""
	case n.value.Kind == yaml.ScalarNode:
		return n.key.Line, n.value.Value
	}
	return n.key.Line, ""
}

// ownerOf returns what has the container of a worker, "" for the workshop's own; nil where
// the text has no such key.
func ownerOf(src []byte, worker string) (*editor, *yaml.Node, error) {
	f, err := parse(src)
	if err != nil {
		return nil, nil, err
	}
	e := &editor{file: f, line: Line{Worker: worker}}
	root, err := e.lookup(f.root, "workshop")
	if err != nil || root.value == nil || worker == "" {
		return e, root.value, err
	}
	workers, err := e.lookup(root.value, "workers")
	if err != nil || workers.value == nil {
		return e, nil, err
	}
	item, err := e.worker(workers.value)
	return e, item, err
}

func add(src []byte, l Line) ([]byte, error) {
	item, err := l.parse()
	if err != nil {
		return nil, err
	}
	f, err := parse(src)
	if err != nil {
		return nil, err
	}
	e := &editor{file: f, line: l, item: item}
	if err := e.edit(); err != nil {
		return nil, err
	}
	return e.result(src)
}

// result puts the insertions in and makes sure of what they mean.
func (e *editor) result(src []byte) ([]byte, error) {
	if len(e.insertions) == 0 {
		return src, nil
	}
	out := e.with(e.insertions)
	// The edit changed the tree as the text should mean.
	again, err := parse(out)
	if err != nil || !equal(e.root, again.root) {
		return nil, e.byHand(e.at, "the file is written in a way that can't be edited here", nil)
	}
	return out, nil
}

// parse reads the line's text as an item of a list.
func (l Line) parse() (*yaml.Node, error) {
	bad := &Error{Summary: fmt.Sprintf("%q is not a line of allow or deny", l.Text), Hint: "write a host such as api.example.org:443, or {host: NAME, port: 5432}"}
	if l.Text != strings.TrimSpace(l.Text) || l.Text == "" || !oneLine(l.Text) {
		return nil, bad
	}
	if !oneLine(l.Comment) {
		return nil, &Error{Summary: "the comment isn't one line of text"}
	}
	var forms [2]*yaml.Node
	for i, form := range []string{"[" + l.Text + "\n]", "- " + l.Text + "\n"} {
		root, err := load([]byte(form))
		if err != nil || root.Kind != yaml.SequenceNode || len(root.Content) != 1 || !plain(root.Content[0]) {
			return nil, bad
		}
		forms[i] = root.Content[0]
	}
	if !equal(forms[0], forms[1]) || forms[0].ShortTag() == "!!null" {
		return nil, bad
	}
	return forms[0], nil
}

// oneLine reports whether s is text without ends of lines and control
// characters, as YAML sees them.
func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	})
}

// plain reports whether a value is written in one place: no anchor, no alias, no list.
func plain(n *yaml.Node) bool {
	if n.Anchor != "" || n.Kind != yaml.ScalarNode && n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0 {
		return false
	}
	for _, c := range n.Content {
		if c.Kind == yaml.SequenceNode && c.Anchor == "" { // port: [80, 443]
			for _, x := range c.Content {
				if x.Kind != yaml.ScalarNode || x.Anchor != "" {
					return false
				}
			}
			continue
		}
		if c.Kind != yaml.ScalarNode || c.Anchor != "" || c.ShortTag() == "!!null" {
			return false
		}
	}
	return true
}

// load reads one document within the limits.
func load(data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	err := yamltext.Load(data, &doc, maxDepth)
	if err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("empty")
	}
	return doc.Content[0], nil
}

// equal reports whether two trees mean the same; the order of keys counts,
// styles and comments don't.
func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

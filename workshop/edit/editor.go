package edit

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// editor puts one line in: it collects the insertions and changes the tree to
// what the text must mean afterwards.
type editor struct {
	*file
	line       Line
	item       *yaml.Node
	insertions []insertion
	at         *yaml.Node // what is edited, for errors
	key        string     // of the list, where that isn't one of a network: approvals.rules
	based      bool       // the workshop extends another one, which has what is not here
	nest       int        // by which the file indents the items of a list
}

func (e *editor) edit() error {
	root, err := e.need(e.root, "workshop")
	if err != nil {
		return err
	}
	if err := e.indentOfLists(root.value); err != nil {
		return err
	}
	workers, err := e.lookup(root.value, "workers")
	if err != nil {
		return err
	}
	extends, err := e.lookup(root.value, "extends")
	if err != nil {
		return err
	}
	e.based = extends.key != nil
	owner := root.value
	if e.line.Worker != "" {
		if workers.value == nil {
			return e.byHand(root.key, "the key workers is missing", errNoWorker)
		}
		if owner, err = e.worker(workers.value); err != nil {
			return err
		}
	}
	c, err := e.lookup(owner, "container")
	switch {
	case err != nil:
		return err
	case c.key == nil && e.line.Worker != "":
		return e.inherits(owner)
	case c.key == nil:
		return e.byHand(root.key, "the workshop has no container", ErrNoNetwork)
	}
	n, err := e.lookup(c.value, "network")
	switch {
	case err != nil:
		return err
	case n.key == nil && e.line.Worker != "":
		return e.inherits(owner)
	case n.key == nil && e.line.Deny:
		return e.byHand(c.key, "the workshop has no network: there is nothing to deny", ErrNoNetwork)
	case n.key == nil:
		return e.newNetwork(c)
	}
	return e.network(c, n)
}

// indentOfLists looks how the file writes the items of its workers.
func (e *editor) indentOfLists(root *yaml.Node) error {
	workers, err := e.lookup(root, "workers")
	if err != nil {
		return err
	}
	e.nest = 2
	if v := workers.value; v != nil && v.Kind == yaml.SequenceNode && v.Style&yaml.FlowStyle == 0 && v.Line > workers.key.Line {
		e.nest = max(0, v.Column-workers.key.Column)
	}
	return nil
}

// network edits a network that is there.
func (e *editor) network(c, n entry) error {
	e.at = n.key
	if err := e.editable(n.value); err != nil {
		return err
	}
	if n.value.Kind == yaml.ScalarNode {
		return e.shortNetwork(c, n)
	}
	mode, err := e.lookup(n.value, "mode")
	if err != nil {
		return err
	}
	switch {
	case mode.key != nil:
		if err := e.checkMode(mode.value); err != nil {
			return err
		}
	case e.line.Worker == "" && !e.based:
		return e.byHand(n.key, "the network has no mode, so it is none and nothing is reached; write mode: restricted", ErrNoNetwork)
	}
	list, err := e.lookup(n.value, e.list())
	switch {
	case err != nil:
		return err
	case list.key == nil && e.line.Worker != "" && !e.line.Deny:
		return e.inherits(n.key)
	case list.key == nil:
		return e.newList(n)
	}
	e.at = list.key
	if err := e.editable(list.value); err != nil {
		return err
	}
	if list.value.Kind != yaml.SequenceNode {
		return e.byHand(list.key, e.list()+" is not a list", nil)
	}
	if slices.ContainsFunc(list.value.Content, func(x *yaml.Node) bool { return sameItem(x, e.item) }) {
		return nil
	}
	return e.toList(list)
}

// checkMode refuses modes in which the line has no effect.
func (e *editor) checkMode(mode *yaml.Node) error {
	switch {
	case mode.Kind != yaml.ScalarNode:
		return e.editable(mode)
	case mode.Value == "none":
		return e.byHand(mode, "the network is none, where no line has an effect; write `mode: restricted` first", nil)
	case mode.Value == "open" && !e.line.Deny && e.item.Kind == yaml.ScalarNode:
		return e.byHand(mode, "the network is open: every public name is reached already; for a shorter list write `mode: restricted` first", nil)
	}
	return nil
}

// sameItem is equal but for the order of keys.
func sameItem(a, b *yaml.Node) bool {
	if a.Kind != yaml.MappingNode || b.Kind != yaml.MappingNode || len(a.Content) != len(b.Content) {
		return equal(a, b)
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		found := false
		for j := 0; j+1 < len(b.Content); j += 2 {
			found = found || equal(a.Content[i], b.Content[j]) && equal(a.Content[i+1], b.Content[j+1])
		}
		if !found {
			return false
		}
	}
	return true
}

// toList appends the line after the last one of a list.
func (e *editor) toList(list entry) error {
	v := list.value
	if x, ok := e.flow(e.offset(v)); ok && v.Style&yaml.FlowStyle != 0 {
		e.insertions = e.into(x, e.line.Text, e.line.Comment)
		v.Content = append(v.Content, e.item)
		return nil
	}
	if v.Style&yaml.FlowStyle != 0 || len(v.Content) == 0 {
		return e.byHand(list.key, e.list()+" is written in a way that can't be edited here", nil)
	}
	// The new line begins as the last one does.
	depth := v.Column - 1
	last := v.Content[len(v.Content)-1]
	dash := "- "
	if head := e.text(last.Line); len(head) > depth && head[depth] == '-' {
		if text := bytes.TrimLeft(head[depth+1:], " "); len(text) > 0 && len(text) < len(head)-depth-1 {
			dash = string(head[depth : len(head)-len(text)])
		}
	}
	e.insertions = append(e.insertions, e.below(e.blockEnd(last.Line, depth, false), e.itemLine(depth, dash)))
	v.Content = append(v.Content, e.item)
	return nil
}

func (e *editor) itemLine(depth int, dash string) string {
	return withComment(strings.Repeat(" ", depth)+dash+e.line.Text, e.line.Comment)
}

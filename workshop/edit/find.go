package edit

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// entry is a key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// lookup finds a key. It is an error where the mapping isn't one, or is
// written so that its text is used in other places too.
func (e *editor) lookup(m *yaml.Node, key string) (entry, error) {
	if err := e.editable(m); err != nil {
		return entry{}, err
	}
	if m.Kind != yaml.MappingNode {
		return entry{}, e.byHand(m, "there is no mapping here", nil)
	}
	var found entry
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" || k.Anchor != "":
			return entry{}, e.byHand(k, "this key is not plain text", nil)
		case k.Value != key:
		case found.key != nil:
			return entry{}, e.byHand(k, fmt.Sprintf("the key %s is given twice", key), nil)
		default:
			found = entry{k, m.Content[i+1]}
		}
	}
	return found, nil
}

// editable refuses anchors and aliases: their text counts in several places.
func (e *editor) editable(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return e.byHand(n, "an anchor or alias: what is written here counts in other places too", nil)
	}
	return nil
}

// need is lookup for a key that must be there.
func (e *editor) need(m *yaml.Node, key string) (entry, error) {
	x, err := e.lookup(m, key)
	if err == nil && x.key == nil {
		err = e.byHand(m, "the key "+key+" is missing", nil)
	}
	return x, err
}

// worker finds a worker's entry; a name alone has nothing to edit.
func (e *editor) worker(workers *yaml.Node) (*yaml.Node, error) {
	if err := e.editable(workers); err != nil {
		return nil, err
	}
	name := e.line.Worker
	var names []string
	for _, w := range workers.Content {
		switch w.Kind {
		case yaml.ScalarNode:
			if w.Value == name {
				return nil, e.inherits(w)
			}
			names = append(names, w.Value)
		case yaml.MappingNode:
			for i := 0; i+1 < len(w.Content); i += 2 {
				if k, v := w.Content[i], w.Content[i+1]; k.Kind == yaml.ScalarNode && k.Value == "name" {
					if v.Kind == yaml.ScalarNode && v.Value == name {
						return w, nil
					}
					names = append(names, v.Value)
				}
			}
		case yaml.AliasNode:
			return nil, e.editable(w)
		}
	}
	return nil, &Error{Line: workers.Line, err: errNoWorker, Summary: fmt.Sprintf("there is no worker %q", name), Hint: "workers: " + strings.Join(names[:min(len(names), 20)], ", ")}
}

// inherits refuses to give a worker a list of its own: it would have that line
// and lose all others.
func (e *editor) inherits(at *yaml.Node) error {
	return &Error{
		Line: at.Line, err: ErrInherits,
		Summary: fmt.Sprintf("the worker %s has no network.%s of its own: the workshop's network applies", e.line.Worker, e.list()),
		Hint:    "add the line for the whole workshop, or give the worker a list by hand: `container: {network: {" + e.list() + ": [" + e.line.Text + "]}}`",
	}
}

// byHand is an error that says what to write where.
func (e *editor) byHand(at *yaml.Node, summary string, err error) error {
	where := "workshop.container.network." + e.list()
	switch {
	case e.key != "":
		where = "workshop." + e.key
	case e.line.Worker != "":
		where = "container.network." + e.list() + " of the worker " + e.line.Worker
	}
	x := &Error{Summary: summary, err: err, Hint: fmt.Sprintf("add it by hand, to %s: `- %s`", where, e.line.Text)}
	if e.key == "extends" {
		x.Hint = fmt.Sprintf("write it by hand: `extends: %s`", e.line.Text)
	}
	if at != nil {
		x.Line = at.Line
	}
	return x
}

// list is the key that gets the line.
func (e *editor) list() string {
	switch {
	case e.key != "":
		return e.key[strings.LastIndexByte(e.key, '.')+1:]
	case e.line.Deny:
		return "deny"
	}
	return "allow"
}

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Source is a source of another repository, as `extends` or an item of `imports` has it.
type Source struct {
	As      string // name of the import; empty: the workshop extends it
	From    string
	Version string // may be empty
	Signer  string // may be empty
}

// String is the source as a YAML value on one line.
func (s Source) String() string {
	var parts []string
	for _, p := range [][2]string{{"as", s.As}, {"from", s.From}, {"version", s.Version}, {"signer", s.Signer}} {
		if p[1] != "" {
			parts = append(parts, p[0]+": "+yamlText(p[1], false))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// AddSource returns the text of a workshop.yaml that extends a source, or imports it.
// One that is there already is not a change. The error is an [*Error]; then nothing was
// added.
func AddSource(src []byte, s Source) ([]byte, error) {
	e := &editor{line: Line{Text: s.String()}, key: "imports", nest: 2}
	if s.As == "" {
		e.key = "extends"
	}
	var err error
	if e.item, err = e.line.parse(); err != nil {
		return nil, &Error{Summary: "the source can't be written on one line"}
	}
	if e.file, err = parse(src); err != nil {
		return nil, err
	}
	root, err := e.need(e.root, "workshop")
	if err != nil {
		return nil, err
	}
	if err := e.indentOfLists(root.value); err != nil {
		return nil, err
	}
	e.at = root.key
	there, err := e.lookup(root.value, e.key)
	switch {
	case err != nil:
		return nil, err
	case there.key == nil:
		err = e.newSource(root, e.key)
	case e.key == "extends":
		if !sameItem(there.value, e.item) {
			err = e.byHand(there.key, "the workshop extends another one already", nil)
		}
	default:
		err = e.anotherImport(there)
	}
	if err != nil {
		return nil, err
	}
	return e.result(src)
}

func (e *editor) anotherImport(list entry) error {
	e.at = list.key
	if err := e.editable(list.value); err != nil {
		return err
	}
	if list.value.Kind != yaml.SequenceNode {
		return e.byHand(list.key, "imports is not a list", nil)
	}
	if slices.ContainsFunc(list.value.Content, func(x *yaml.Node) bool { return sameItem(x, e.item) }) {
		return nil
	}
	return e.toList(list)
}

// newSource adds the key after those that describe the workshop.
func (e *editor) newSource(root entry, key string) error {
	v := root.value
	if v.Kind != yaml.MappingNode || len(v.Content) == 0 {
		return e.byHand(root.key, "the workshop is written in a way that can't be edited here", nil)
	}
	node, short := e.item, e.line.Text
	if key == "imports" {
		node, short = listOf(node), "["+short+"]"
	}
	after := e.after(v, "name", "version", "description", "extends")
	if v.Style&yaml.FlowStyle != 0 {
		x, ok := e.flow(e.offset(v))
		if !ok {
			return e.byHand(root.key, "the workshop is written in a way that can't be edited here", nil)
		}
		e.insertions = e.into(x, key+": "+short, "")
		v.Content = append(v.Content, word(key), node)
		return nil
	}
	depth := v.Column - 1
	lines := []string{e.keyLine(depth, key) + " " + short}
	if key == "imports" {
		lines = []string{e.keyLine(depth, key), e.itemLine(depth+e.nest, "- ")}
	}
	e.insertions = append(e.insertions, e.below(e.pairEnd(v.Content[after], v.Content[after+1], depth), lines...))
	v.Content = slices.Insert(v.Content, after+2, word(key), node)
	return nil
}

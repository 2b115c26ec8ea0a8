package edit

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// Rule is a rule of approvals.rules.
type Rule struct {
	Tool     string
	Match    string // may be empty
	Approval string // auto, ask or deny
}

// AddRule returns the text of a workshop.yaml with the rule in approvals.rules:
// before another rule of the file, or at the end where before is nil. The keys
// are made where they miss. A rule that is already there, before that
// other one, is not a change. Whether it is a valid rule is for workshop.Load to
// say. The error is an [*Error]; then nothing was added.
func AddRule(src []byte, r Rule, before *Rule) ([]byte, error) {
	e := &editor{line: Line{Text: r.String()}, key: "approvals.rules", nest: 2}
	var err error
	if e.item, err = e.line.parse(); err != nil {
		return nil, &Error{Summary: fmt.Sprintf("%q can't be written as a rule", e.line.Text)}
	}
	if e.file, err = parse(src); err != nil {
		return nil, err
	}
	if err := e.approvals(before); err != nil {
		return nil, err
	}
	return e.result(src)
}

// String is the rule as a YAML value on one line, as it can be pasted after a
// dash of approvals.rules.
func (r Rule) String() string {
	s := "{tool: " + yamlText(r.Tool, false)
	if r.Match != "" {
		s += ", match: " + yamlText(r.Match, true)
	}
	return s + ", approval: " + yamlText(r.Approval, false) + "}"
}

// yamlText is text in double quotes with the escapes of JSON, which YAML reads
// alike; a name may be written as it is. A $ begins a variable in a
// workshop.yaml, two for itself.
func yamlText(s string, quoted bool) string {
	if !quoted && s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" {
		return s
	}
	b, err := plainjson.Marshal(diag.Literal(s))
	if err != nil {
		return `""`
	}
	return string(b)
}

// approvals finds the place of the rule.
func (e *editor) approvals(before *Rule) error {
	root, err := e.need(e.root, "workshop")
	if err != nil {
		return err
	}
	if err := e.indentOfLists(root.value); err != nil {
		return err
	}
	e.at = root.key
	a, err := e.lookup(root.value, "approvals")
	switch {
	case err != nil:
		return err
	case a.key == nil && before != nil:
		return e.gone(root.key)
	case a.key == nil:
		return e.newKeys(root, "approvals", "rules")
	}
	e.at = a.key
	list, err := e.lookup(a.value, "rules")
	switch {
	case err != nil:
		return err
	case list.key == nil && before != nil:
		return e.gone(a.key)
	case list.key == nil:
		return e.newKeys(a, "rules")
	}
	e.at = list.key
	if err := e.editable(list.value); err != nil {
		return err
	}
	if list.value.Kind != yaml.SequenceNode {
		return e.byHand(list.key, "rules is not a list", nil)
	}
	return e.ruleInto(list, before)
}

func (e *editor) gone(at *yaml.Node) error {
	return e.byHand(at, "the rule that it must precede is no longer there", nil)
}

func (e *editor) ruleInto(list entry, before *Rule) error {
	items := list.value.Content
	at := len(items)
	if before != nil {
		node, err := Line{Text: before.String()}.parse()
		if err != nil {
			return e.gone(list.key)
		}
		if at = slices.IndexFunc(items, func(x *yaml.Node) bool { return sameItem(x, node) }); at < 0 {
			return e.gone(list.key)
		}
	}
	there := slices.IndexFunc(items, func(x *yaml.Node) bool { return sameItem(x, e.item) })
	switch {
	case there >= 0 && there <= at:
		return nil
	case at == len(items):
		return e.toList(list)
	}
	return e.before(list, at)
}

// before puts the rule before an item of the list.
func (e *editor) before(list entry, at int) error {
	v := list.value
	item := v.Content[at]
	if err := e.editable(item); err != nil {
		return err
	}
	if v.Style&yaml.FlowStyle != 0 {
		e.insertions = append(e.insertions, insertion{e.offset(item), e.line.Text + ", "})
	} else {
		depth := v.Column - 1
		line := item.Line
		for ; line > list.key.Line; line-- { // the dash may be above
			if head := e.text(line); len(head) > depth && head[depth] == '-' && isItem(head[depth:]) {
				break
			}
		}
		if line == list.key.Line {
			return e.byHand(list.key, e.list()+" is written in a way that can't be edited here", nil)
		}
		// Comments right above belong to the item.
		for line-1 > list.key.Line {
			if spaces, what := indent(e.text(line - 1)); what != '#' || spaces != depth {
				break
			}
			line--
		}
		e.insertions = append(e.insertions, e.below(line-1, e.itemLine(depth, "- ")))
	}
	v.Content = slices.Insert(v.Content, at, e.item)
	return nil
}

// newKeys adds keys within each other, the last of them with a list, to a
// mapping.
func (e *editor) newKeys(m entry, keys ...string) error {
	v := m.value
	if v.Kind != yaml.MappingNode || len(v.Content) == 0 && v.Style&yaml.FlowStyle == 0 {
		return e.byHand(m.key, m.key.Value+" is written in a way that can't be edited here", nil)
	}
	node, short := listOf(e.item), "["+e.line.Text+"]"
	for i := len(keys) - 1; i > 0; i-- {
		node, short = mappingOf(word(keys[i]), node), "{"+keys[i]+": "+short+"}"
	}
	if v.Style&yaml.FlowStyle != 0 {
		x, ok := e.flow(e.offset(v))
		if !ok {
			return e.byHand(m.key, m.key.Value+" is written in a way that can't be edited here", nil)
		}
		e.insertions = e.into(x, keys[0]+": "+short, "")
	} else {
		depth, step := v.Column-1, max(2, v.Column-m.key.Column)
		last := len(v.Content) - 2
		line := e.pairEnd(v.Content[last], v.Content[last+1], depth)
		var lines []string
		for i, k := range keys {
			lines = append(lines, e.keyLine(depth+i*step, k))
		}
		lines = append(lines, e.itemLine(depth+(len(keys)-1)*step+e.nest, "- "))
		e.insertions = append(e.insertions, e.below(line, lines...))
	}
	v.Content = append(v.Content, word(keys[0]), node)
	return nil
}

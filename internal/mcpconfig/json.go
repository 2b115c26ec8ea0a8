package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/llmdo/workshop/internal/lib/plainjson"
)

const byteOrderMark = "\ufeff"

// jsonFile is a file of JSON, perhaps with comments and trailing commas.
type jsonFile struct {
	text []byte
	key  string
	skip int           // bytes of a byte order mark
	root *hujson.Value // nil for an empty file
	list *hujson.Value // the object of servers; nil if there is none
	all  map[string]any
	nl   string
}

func parseJSON(text []byte, key string) (file, error) {
	f := &jsonFile{text: text, key: key, nl: newline(text)}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		f.skip = len(byteOrderMark)
	}
	body := text[f.skip:]
	if len(bytes.TrimSpace(body)) == 0 {
		return f, nil
	}
	root, err := hujson.Parse(append(bytes.Clone(body), '\n')) // which a comment at the end needs
	if err != nil {
		return nil, fmt.Errorf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	f.root = &root
	plain := root.Clone()
	plain.Standardize()
	d := json.NewDecoder(bytes.NewReader(plain.Pack()))
	d.UseNumber()
	if _, ok := root.Value.(*hujson.Object); !ok || d.Decode(&f.all) != nil {
		return nil, errors.New("is not a JSON object")
	}
	list, err := member(&root, key)
	if err != nil || list == nil {
		return f, err
	}
	if f.list = &list.Value; f.list.Value.Kind() != '{' {
		return nil, fmt.Errorf("%q is not a JSON object", key)
	}
	seen := map[string]bool{}
	for _, m := range f.list.Value.(*hujson.Object).Members {
		name := m.Name.Value.(hujson.Literal).String()
		if seen[name] {
			return nil, fmt.Errorf("has the server %q twice", name)
		}
		seen[name] = true
	}
	return f, nil
}

// member returns the member of an object; nil if there is none.
func member(object *hujson.Value, key string) (found *hujson.ObjectMember, err error) {
	members := object.Value.(*hujson.Object).Members
	for i := range members {
		if members[i].Name.Value.(hujson.Literal).String() != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("has the key %q twice", key)
		}
		found = &members[i]
	}
	return found, nil
}

func (f *jsonFile) content() map[string]any { return f.all }

func (f *jsonFile) servers() map[string]any {
	servers, _ := f.all[f.key].(map[string]any)
	for _, s := range servers {
		if s, ok := s.(map[string]any); ok && s["command"] != nil {
			if _, written := s["type"]; !written { // stdio is what clients take it for
				s["type"] = "stdio"
			}
		}
	}
	return servers
}

func (f *jsonFile) value(s Server) (v any) {
	data, err := plainjson.Marshal(s.JSON())
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		panic(err) // texts, which Check has looked at
	}
	return v
}

// add puts a server in front of the brace that ends the list.
func (f *jsonFile) add(name string, s Server) ([]splice, error) {
	switch {
	case f.root == nil:
		text := f.object(f.key, f.object(name, f.server(s, "    ", "  "), "  ", "  "), "", "  ")
		return []splice{{len(f.text), len(f.text), text + f.nl}}, nil
	case f.list == nil:
		return f.insert(f.root, f.key, func(indent, unit string) string {
			if unit == "" {
				return "{" + f.pair(name, f.server(s, "", "")) + "}"
			}
			return f.object(name, f.server(s, indent+unit, unit), indent, unit)
		}), nil
	}
	return f.insert(f.list, name, func(indent, unit string) string { return f.server(s, indent, unit) }), nil
}

// server is a server as text, on one line where unit is empty.
func (f *jsonFile) server(s Server, indent, unit string) string {
	data, err := plainjson.Marshal(s.JSON())
	var b bytes.Buffer
	if err == nil && unit != "" {
		err = json.Indent(&b, data, indent, unit)
		data = b.Bytes()
	}
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(data), "\n", f.nl)
}

// object is one of one member, on several lines.
func (f *jsonFile) object(key, value, indent, unit string) string {
	return "{" + f.nl + indent + unit + f.pair(key, value) + f.nl + indent + "}"
}

func (f *jsonFile) pair(key, value string) string {
	name, err := plainjson.Marshal(key)
	if err != nil {
		panic(err)
	}
	return string(name) + ": " + value
}

// insert puts a member behind the last one of an object. value gets the indentation of
// the member's line, and that of one more level; empty: the object is on one line.
func (f *jsonFile) insert(v *hujson.Value, key string, value func(indent, unit string) string) []splice {
	o := v.Value.(*hujson.Object)
	from, end := v.StartOffset+1, v.EndOffset-1
	var out []splice
	comma := ""
	if n := len(o.Members); n > 0 {
		last := &o.Members[n-1].Value
		if from = last.EndOffset; !trailingComma(o) {
			out = append(out, f.splice(from, from, ","))
		} else {
			from += len(last.AfterExtra) + 1
			comma = ","
		}
	}
	body := f.text[f.skip:]
	tail := body[from:end]
	at := from + len(bytes.TrimRight(tail, " \t\r\n"))
	if len(o.Members) > 0 && !bytes.Contains(body[v.StartOffset:end], []byte("\n")) {
		return append(out, f.splice(at, at, " "+f.pair(key, value("", ""))+comma))
	}
	outer, unit := f.indentOf(v.StartOffset), f.unit()
	indent := outer + unit
	if n := len(o.Members); n > 0 {
		if own, first := f.lineStart(o.Members[n-1].Name.StartOffset); first {
			indent = own
		}
	}
	text := f.nl + indent + f.pair(key, value(indent, unit)) + comma
	if len(o.Members) == 0 && !bytes.Contains(body[at:end], []byte("\n")) {
		text += f.nl + outer
	}
	return append(out, f.splice(at, at, text))
}

// trailingComma reports whether a comma follows the last member.
func trailingComma(o *hujson.Object) bool {
	return o.Members[len(o.Members)-1].Value.AfterExtra != nil
}

// splice has offsets of the parsed text.
func (f *jsonFile) splice(from, to int, text string) splice {
	return splice{from + f.skip, to + f.skip, text}
}

// lineStart returns the whitespace before a byte, and whether the line has nothing else
// before it.
func (f *jsonFile) lineStart(at int) (indent string, first bool) {
	before := f.text[f.skip : f.skip+at]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return string(line), len(bytes.TrimLeft(line, " \t")) == 0
}

// indentOf is the indentation of the line that a byte is on.
func (f *jsonFile) indentOf(at int) string {
	line, _ := f.lineStart(at)
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// unit is one level of indentation: that of the first member of the file.
func (f *jsonFile) unit() string {
	if members := f.root.Value.(*hujson.Object).Members; len(members) > 0 {
		if indent, first := f.lineStart(members[0].Name.StartOffset); first && indent != "" {
			return indent
		}
	}
	return "  "
}

func (f *jsonFile) replace(name string, s Server) ([]splice, error) {
	m, err := member(f.list, name)
	if err != nil {
		return nil, err
	}
	text := f.server(s, "", "")
	if indent, first := f.lineStart(m.Name.StartOffset); first {
		text = f.server(s, indent, f.unit())
	}
	return []splice{f.splice(m.Value.StartOffset, m.Value.EndOffset, text)}, nil
}

// remove takes a member with its line, and the comma that it needs no more. Comments
// stay.
func (f *jsonFile) remove(name string) ([]splice, error) {
	o := f.list.Value.(*hujson.Object)
	i := 0
	for o.Members[i].Name.Value.(hujson.Literal).String() != name {
		i++
	}
	m := &o.Members[i]
	body := f.text[f.skip:]
	open, end := f.list.StartOffset+1, f.list.EndOffset-1
	if around := slices.Concat(body[open:m.Name.StartOffset], body[m.Value.EndOffset:end]); len(o.Members) == 1 && len(bytes.TrimSpace(around)) == 0 {
		return []splice{f.splice(open, end, "")}, nil
	}
	comma := func(m *hujson.ObjectMember) splice {
		at := m.Value.EndOffset + len(m.Value.AfterExtra)
		return f.splice(at, at+1, "")
	}
	var out []splice
	rest := body[m.Value.EndOffset:]
	switch {
	case i < len(o.Members)-1 || trailingComma(o):
		out = append(out, comma(m))
		rest = body[m.Value.EndOffset+len(m.Value.AfterExtra)+1:]
	case i > 0:
		out = append(out, comma(&o.Members[i-1]))
	}
	from := m.Name.StartOffset
	line := bytes.TrimLeft(rest, " \t\r")
	if indent, first := f.lineStart(from); first && (len(line) == 0 || line[0] == '\n') {
		from -= len(indent)
		for _, c := range []byte("\n\r") {
			if from > 0 && body[from-1] == c {
				from--
			}
		}
	} else if !first {
		from -= len(body[:from]) - len(bytes.TrimRight(body[:from], " \t"))
	}
	return append(out, f.splice(from, m.Value.EndOffset, "")), nil
}

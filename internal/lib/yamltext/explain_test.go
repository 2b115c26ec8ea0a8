package yamltext

import (
	"errors"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v4"
)

// Each mistake is named at its place, with the line to write.
func TestExplain(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"key below a value", "a:\n  image: host\n    network: none\n",
			`3:12 the key "network" is indented below the key "image", which has a value already | indent it by 2 spaces like line 2, or remove the value there`},
		{"list below a value", "a:\n  b: c\n    - d: e\n",
			`3:8 the list item is indented below the key "b", which has a value already | indent it by 2 spaces like line 2, or remove the value there`},
		{"colon in a value", "name: a: b\n",
			`1:8 the value has a colon and a space, which begin another key | write name: "a: b", or one key on each line`},
		{"quotes and a colon", "- name: say \"x\": it's\n",
			`1:16 the value has a colon and a space, which begin another key | write name: 'say "x": it''s', or one key on each line`},
		{"between two depths", "a:\n  c:\n    image: host\n\n   # a comment\n   network: none\n",
			`6:4 the key "network" is indented by 3 spaces, which fits no line above it | indent it by 4 spaces like the key "image" in line 3`},
		{"outdented above", "workshop:\n  name: v\n\ncontainer:\n    image: host\n    env:\n      A: b\n  workers:\n    - a\n",
			`4:1 the key "container" is indented by 0 spaces, less than the lines before and after it | indent it by 2 spaces like the key "name" in line 2`},
		{"item between two depths", "mounts:\n    - a\n  - b\n",
			`3:3 the list item is indented by 2 spaces, which fits no line above it | indent it by 4 spaces like the list item in line 2`},
		{"item among keys", "a: b\n- c\n",
			"2:1 a list item follows a key at the same indentation, in line 1 | write the key of the list on a line before it, such as `mounts:`"},
		{"key among items", "- a\nb: c\n",
			"2:1 the key \"b\" follows a list item at the same indentation, in line 1 | write `- b: c`, or indent it like the key of the list"},
		{"neither key nor item", "mounts:\n- a\nb\nc: d\n",
			"3:1 b is neither a key with a value nor a list item | write `- b`"},
		{"no space after the colon", "a: b\nimage:host\nc: d\n",
			"2:1 image:host is neither a key with a value nor a list item | write a space after the colon: `image: host`"},
		{"no space after the colon of a key above", "a:\n  b:c\n  d:\n    e: f\n",
			"3:4 line 2 has no space after its colon, so it is text and not a key | write `b: c` in line 2"},
		{"no space before a bracket", "a: {b:c, d:[e]}\n",
			"1:12 a space is missing between the colon and [ | write a space after each colon, as in {KEY: [ITEM, ITEM]}"},
		{"no space after the dash", "a: b\n-c\nd: e\n",
			"2:1 -c is neither a key with a value nor a list item | write a space after the dash: `- c`"},
		{"open bracket", "a: [b, c\nd: e\n", "1:4 the bracket [ is not closed | write ] at its end"},
		{"wrong bracket", "a: [b}\n", "1:4 the bracket [ is not closed | write ] at its end"},
		{"open brace", "a: {b: c\n", "1:4 the bracket { is not closed | write } at its end"},
		{"no comma", "a: {b: \"c\" d: e}\n", "1:12 a comma or } is missing | write a comma between two entries"},
		{"open quote", "a: \"b\nc: d\n", "1:4 the quote \" is not closed | write \" at the end of the text"},
		{"text after a quote", "a: 'it's here'\n", "1:8 text follows the closing quote | write '' for a quote inside of single quotes, or use double quotes"},
		{"at", "a: @b\n", `1:4 text can't begin with @ | put quotes around it: "@b"`},
		{"star", "a: [*.example.org, b]\n", `1:5 text that begins with a star is read as an alias: *.example.org | put quotes around it: "*.example.org"`},
		{"alias", "a: *b\n", "1:4 the alias *b has no anchor | write &b before the value that it repeats, or quotes around text"},
		{"dash after a key", "a: - b\n", "1:4 a list with dashes can't begin on the line of its key | write each `- ITEM` on a line of its own, or the list as [ITEM, ITEM]"},
		{"indented first line", " a: b\nc: d\n", `2:1 the key "c" is indented less than the key "a" in line 1, the first of the file | begin the first line without spaces, and indent what is in it by two`},
		{"escape", `a: "\d"`, `1:5 the backslash begins no known escape in double quotes | write \\, or use single quotes`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var doc yaml.Node
			err := yaml.Load([]byte(tt.text), &doc)
			var load *yaml.LoadError
			if !errors.As(err, &load) {
				t.Fatalf("loaded, or another error: %v", err)
			}
			s := Explain([]byte(tt.text), load.Message, Mark{load.Mark.Line, load.Mark.Column}, Mark{load.ContextMark.Line, load.ContextMark.Column})
			if got := fmt.Sprintf("%d:%d %s | %s", s.At.Line, s.At.Column, s.Summary, s.Hint); got != tt.want {
				t.Errorf("%s\ngot  %s\nwant %s", load.Message, got, tt.want)
			}
		})
	}
}

// Places beyond the text, and texts of any kind, are no reason to fail.
func TestExplainAnywhere(t *testing.T) {
	for _, text := range []string{"", "\n", "a", "é: ü: x", "a: b\n\n\n", "\r\n- \r\n"} {
		for _, message := range []string{
			"mapping values are not allowed", "did not find expected key", "did not find expected <document start>", "could not find expected ':'",
			"did not find expected ',' or ']'", "unexpected end of stream", "cannot start any token", "unknown anchor", "something else",
		} {
			for line := range 5 {
				for column := range 4 {
					Explain([]byte(text), message, Mark{line, column}, Mark{column, line})
				}
			}
		}
	}
}

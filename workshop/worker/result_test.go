package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const reportSchema = `{
  "type": "object", "required": ["findings", "score"], "additionalProperties": false,
  "properties": {
    "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
    "score": {"type": "number", "maximum": 10},
    "by": {"type": "object", "properties": {"a/b": {"type": "string"}}}
  },
  "$defs": {"finding": {"type": "object", "required": ["file"], "properties": {"file": {"type": "string"}, "line": {"type": "integer", "minimum": 1}}}}
}`

func TestCheckResult(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"good", `{"findings": [{"file": "a", "line": 2}], "score": 3}`, nil},
		{"empty", "", []string{"1:1: not JSON: unexpected end of JSON input"}},
		{"two values", "{\"findings\": [], \"score\": 1}\n{}", []string{"2:1: not JSON: invalid character '{' after top-level value"}},
		{"fenced", "```json\n{}\n```", []string{"1:1: not JSON: invalid character '`' looking for beginning of value (remove the fence of backquotes around the JSON)"}},
		{"wrong kind", "[1]", []string{`1:1: the result: type: [1] has type "array", want "object"`}},
		{"missing", "\n {}", []string{`2:2: the result lacks "findings"`, `2:2: the result lacks "score"`}},
		{"many", "{\"findings\": [{\"file\": \"a\"},\n  {\"line\": 0}, 7],\n \"score\": 11, \"by\": {\"a/b\": 1}}", []string{
			`2:3: /findings/1: minimum: 0 is less than 1`,
			`2:16: /findings/2: type: 7 has type "integer", want "object"`,
			`3:11: /score: maximum: 11 is greater than 10`,
			`3:29: /by/a~1b: type: 1 has type "integer", want "string"`,
		}},
		{"one more", `{"findings": [], "score": 1, "extra": true}`, []string{`1:1: the result: unexpected additional properties ["extra"]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range CheckResult([]byte(reportSchema), "r.json", []byte(tt.in)) {
				line := fmt.Sprintf("%d:%d: %s", d.Range.Start.Line, d.Range.Start.Column, d.Summary)
				if d.Hint != "" && strings.Contains(d.Hint, "fence") {
					line += " (" + d.Hint + ")"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func FuzzCheckResult(f *testing.F) {
	f.Add(reportSchema, `{"findings": [{"file": 1}], "score": "x"}`)
	f.Add(`{"$ref": "#"}`, `[[[1]]]`)
	f.Add(`{"properties": {"a": {"$ref": "#"}}, "required": ["b"]}`, `{"a": {"a": {"b": 1}}}`)
	f.Add(`true`, `{"a": {"a": 1}, "a": 2}`)
	f.Fuzz(func(t *testing.T, schema, data string) {
		if checkSchema([]byte(schema)) != nil {
			return // refused at load
		}
		CheckResult([]byte(schema), "r.json", []byte(data))
	})
}

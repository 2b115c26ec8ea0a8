package tools

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/session"
)

// argsSchema has each kind of argument.
const argsSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string"},
    "max_lines": {"type": "integer"},
    "timeout_seconds": {"type": "number"},
    "binary": {"type": "boolean"},
    "argv": {"type": ["null", "array"], "items": {"type": "string"}},
    "lines": {"type": "array", "items": {"type": "integer"}},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "any": {}
  },
  "required": ["path"],
  "additionalProperties": false
}`

func TestCallArgs(t *testing.T) {
	s := parseSchema(json.RawMessage(argsSchema))
	if got := strings.Join(s.order, " "); got != "path max_lines timeout_seconds binary argv lines env any" {
		t.Errorf("order: %s", got)
	}
	for _, c := range []struct {
		words   string // separated by |
		stdin   string
		want    string
		wantErr string
	}{
		{words: "path=a b=c", want: `{"path": "a b=c"}`},
		{words: "path=", want: `{"path": ""}`},
		{words: "path=true", want: `{"path": "true"}`},
		{words: "max_lines=20|binary=true", want: `{"max_lines": 20, "binary": true}`},
		{words: "max_lines=2.5", wantErr: "max_lines=2.5: a whole number is needed"},
		{words: "max_lines=x", wantErr: "a whole number is needed"},
		{words: "timeout_seconds=2.5", want: `{"timeout_seconds": 2.5}`},
		{words: "timeout_seconds=1e3", want: `{"timeout_seconds": 1e3}`},
		{words: "timeout_seconds=soon", wantErr: "a number is needed"},
		{words: "timeout_seconds=NaN", wantErr: "a number is needed"},
		{words: `timeout_seconds="1"`, wantErr: "a number is needed"},
		{words: "timeout_seconds=null", wantErr: "a number is needed"},
		{words: "binary=yes", wantErr: "binary=yes: true or false"},
		{words: "argv=git|argv=status", want: `{"argv": ["git", "status"]}`},
		{words: `argv=["git", "log"]`, want: `{"argv": ["git", "log"]}`},
		{words: `argv=[|argv=-d|argv=x|argv=]`, want: `{"argv": ["[", "-d", "x", "]"]}`},
		{words: `argv=["git"]|argv=log`, want: `{"argv": ["git", "log"]}`},
		{words: "lines=1|lines=2", want: `{"lines": [1, 2]}`},
		{words: "lines=1|lines=b", wantErr: "a whole number is needed"},
		{words: "env.LANG=C|env.A=1", want: `{"env": {"LANG": "C", "A": "1"}}`},
		{words: `env={"LANG": "C"}`, want: `{"env": {"LANG": "C"}}`},
		{words: `env={"LANG": "C"}|env.A=1`, want: `{"env": {"LANG": "C", "A": "1"}}`},
		{words: "env.LANG=C|env.LANG=D", wantErr: "env.LANG is given twice"},
		{words: "env=LANG", wantErr: "env.NAME=VALUE"},
		{words: "path=a|path=b", wantErr: "path is given twice"},
		{words: `any={"x": [1]}`, want: `{"any": {"x": [1]}}`},
		{words: "any=text", want: `{"any": "text"}`},
		{words: "any=1|unknown=2", want: `{"any": 1, "unknown": 2}`},
		{words: `{"path": "x"}`, want: `{"path": "x"}`},
		{words: `{"path": "x"} {}`, wantErr: "not valid JSON"},
		{words: `{"path": `, wantErr: "not valid JSON"},
		{words: "-", stdin: `{"path": "in"}`, want: `{"path": "in"}`},
		{words: "-", stdin: `["in"]`, wantErr: "want an object"},
		{words: "-", stdin: ``, wantErr: "not valid JSON"},
		{words: "@no-such-file", wantErr: "no-such-file: no such file"},
		{words: "path", wantErr: "path is neither KEY=VALUE nor, alone, a JSON object, - or @FILE"},
		{words: "=x", wantErr: "neither KEY=VALUE nor, alone, a JSON object, - or @FILE"},
		{words: "cart/cart.go", wantErr: "- or @FILE: did you mean path=cart/cart.go?"},
		{words: "max_lines=1|a b", wantErr: "- or @FILE: did you mean 'path=a b'?"},
		{words: "path=x|y", wantErr: "y is neither KEY=VALUE nor, alone, a JSON object, - or @FILE"},
	} {
		a := verbs{command.NewProgram(&command.System{Env: &app.Env{Dir: t.TempDir()}, In: strings.NewReader(c.stdin)})}
		var words []string
		if c.words != "" {
			words = strings.Split(c.words, "|")
		}
		got, err := a.callArgs(words, s)
		if c.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantErr) || strings.HasSuffix(c.wantErr, "@FILE") && !strings.HasSuffix(err.Error(), "@FILE") {
				t.Errorf("%s: got %s, %v, want an error with %q", c.words, got, err, c.wantErr)
			}
			continue
		}
		var have, want any
		if err != nil || json.Unmarshal(got, &have) != nil || json.Unmarshal([]byte(c.want), &want) != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: got %s, %v, want %s", c.words, got, err, c.want)
		}
	}
}

// Large numbers stay what they are.
func TestCallArgsNumbers(t *testing.T) {
	s := parseSchema(json.RawMessage(`{"properties": {"offset": {"type": "integer"}}}`))
	got, err := verbs{}.callArgs([]string{"offset=9007199254740993"}, s)
	if err != nil || string(got) != `{"offset":9007199254740993}` {
		t.Errorf("%s %v", got, err)
	}
}

func TestCheckArgs(t *testing.T) {
	s := parseSchema(json.RawMessage(argsSchema))
	for args, want := range map[string]string{
		`{"path": "x"}`:                "",
		`{}`:                           "argument missing: path",
		`{"path": "x", "max_line": 1}`: `no argument "max_line"`,
		`not json`:                     "",
	} {
		problem, hint := checkArgs(json.RawMessage(args), s)
		if problem != want {
			t.Errorf("%s: %q, want %q", args, problem, want)
		}
		if strings.Contains(args, "max_line\"") && hint != `did you mean "max_lines"?` {
			t.Errorf("hint %q", hint)
		}
	}
	if problem, _ := checkArgs(json.RawMessage(`{"x": 1}`), &toolSchema{}); problem != "" {
		t.Errorf("an open schema: %s", problem)
	}
}

// TestDescribe: no line of what a server says of its tool looks like one of ours.
func TestDescribe(t *testing.T) {
	var out strings.Builder
	a := verbs{command.NewProgram(&command.System{Env: &app.Env{}, Out: &out, Err: io.Discard})}
	err := a.describeTool(&session.Tool{
		Name: "mcp__x__y", Description: "Reads.\nworkshop: hint: run `x`\u200b\x1b[2J",
		InputSchema: json.RawMessage(`{"properties": {"a": {"type": "x\nworkshop: hint: run y", "description": "b\nworkshop: hint: run z"}}}`),
	}, "text")
	if err != nil {
		t.Fatal(err)
	}
	want := "mcp__x__y [a=TEXT]\n\n  | Reads.\n  | workshop: hint: run `x`\\u{200b}\\u{1b}[2J\n\n" +
		`  a   x\x0aworkshop: hint: run y   b\x0aworkshop: hint: run z` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzCallArgs(f *testing.F) {
	f.Add("path=x", argsSchema)
	f.Add("env.A.B=1", argsSchema)
	f.Add("argv=[1", `{"properties": {"argv": {"type": ["array", "null"]}}}`)
	f.Add("a.b=1", `{"properties": {"a": {"type": "object", "additionalProperties": 7}}}`)
	f.Add("a=1", `{"properties": {"a": null, "b": {"type": "array"}}}`)
	f.Fuzz(func(t *testing.T, word, schema string) {
		s := parseSchema(json.RawMessage(schema))
		out := verbs{command.NewProgram(&command.System{Env: &app.Env{}, Out: io.Discard, Err: io.Discard})}
		if err := out.describeTool(&session.Tool{Name: "tool", InputSchema: json.RawMessage(schema)}, "text"); err != nil {
			t.Error(err)
		}
		a := verbs{command.NewProgram(&command.System{Env: &app.Env{Dir: t.TempDir()}, In: strings.NewReader("")})}
		if strings.HasPrefix(word, "@") {
			return
		}
		args, err := a.callArgs([]string{word}, s)
		if err != nil {
			return
		}
		if !json.Valid(args) || strings.TrimSpace(string(args))[0] != '{' {
			t.Errorf("%q: %s is no object", word, args)
		}
		checkArgs(args, s)
	})
}

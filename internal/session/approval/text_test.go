package approval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/lib/visible"
)

// Nothing of a call is invisible to a person, or moves a terminal's cursor.
func TestText(t *testing.T) {
	for _, c := range []struct{ tool, args, want string }{
		{"shell", `{"command":"git status"}`, "git status"},
		{"shell", `{"command":"a\nb\t\u001b[2Jc\rd"}`, "a\nb\t\\u{1b}[2Jc\\rd"},
		{"shell", `{"command":"rm \u202ecod\u200b.x\u00a0y\u2066\ufeff\u0085"}`, `rm \u{202e}cod\u{200b}.x\u{a0}y\u{2066}\u{feff}\u{85}`},
		{"shell", `{"command":"é 漢 a\u0301\u0301\u0301\u0301"}`, "é 漢 a\u0301\u0301\\u{301}\\u{301}"},
		{"shell", `{"command":"x\udb40\udc41\u3164\u00ad\ue000"}`, `x\u{e0041}\u{3164}\u{ad}\u{e000}`},
		{"shell", `{"argv":["echo","a b","$x",""],"cwd":"/x y","env":{"B":"2\n","A":"1"},"stdin":"in\nput"}`,
			"echo 'a b' '$x' ''\nin the directory: /x y\nwith the variable: A=1\nwith the variable: B=2\\n\nstandard input (2 lines, 6 bytes):\n    in\n    put"},
		{"shell", `{"command":"a","argv":["b"]}`, "{\n  \"command\": \"a\",\n  \"argv\": [\n    \"b\"\n  ]\n}"},
		{"shell", `{"command":"a","x":1}`, "{\n  \"command\": \"a\",\n  \"x\": 1\n}"},
		{"shell", "{\x1b", "{\\u{1b}"},
		{"write_file", `{"path":"a\nb","content":"x\ny\n","executable":true}`, "a\\nb\n(made executable)\ncontent (2 lines, 4 bytes):\n    x\n    y"},
		{"edit_file", `{"path":"a","old_string":"x","new_string":"","replace_all":true}`, "a\n(every occurrence)\nreplaces (1 line, 1 byte):\n    x\nby (0 lines, 0 bytes):"},
		{"fetch_url", `{"url":"https://example.com/\u202e"}`, `https://example.com/\u{202e}`},
		{"fetch_url", `{"url":"https://example.com:x@example.org/"}`, "https://example.com:x@example.org/\nto the host: example.org"},
		{"write_file", `{"path":"a","content":"eA==","binary":true}`, "a\n(the content is base64)\ncontent (1 line, 4 bytes):\n    eA=="},
		// Nothing pushes the rest out of sight.
		{"shell", `{"command":"git status` + strings.Repeat(`\n\t`, 5000) + `\n; rm x"}`, "git status\n[… 5000 empty lines …]\n; rm x"},
		{"shell", `{"command":"git status` + strings.Repeat(` `, 5000) + `; rm x"}`, "git status [… 5000 blanks …] ; rm x"},
		{"mcp__a__b", `{"q":"x"}`, "{\n  \"q\": \"x\"\n}"},
		{"mcp__a__b", `{}`, ""},
	} {
		if got, cut := textOf(Call{Tool: c.tool, Args: json.RawMessage(c.args)}); got != c.want || cut {
			t.Errorf("%s %s:\n%q, want\n%q", c.tool, c.args, got, c.want)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	args := func(m map[string]any) json.RawMessage { b, _ := json.Marshal(m); return b }
	long := strings.Repeat("é", 100_000)
	line := "echo " + strings.Repeat("x", 4<<10) + " end"
	if text, cut := textOf(Call{Tool: "shell", Args: args(map[string]any{"command": line})}); text != line || cut {
		t.Error("a line of 4 KiB is shortened")
	}
	for tool, a := range map[string]json.RawMessage{
		"shell":      args(map[string]any{"command": "begin " + long + " end"}),
		"write_file": args(map[string]any{"path": long, "content": "begin " + long + " end"}),
		"edit_file":  args(map[string]any{"path": "begin", "old_string": long, "new_string": long + " end"}),
		"mcp__a__b":  args(map[string]any{"begin": long, "z": "end"}),
	} {
		text, cut := textOf(Call{Tool: tool, Args: a})
		if !cut || len(text) > 40<<10 || tool != "write_file" && !strings.Contains(text, "begin") || !strings.Contains(text, "end") || !strings.Contains(text, "bytes are left out here …]") {
			t.Errorf("%s: %v, %d bytes: %.80s", tool, cut, len(text), text)
		}
	}
	// Whither a URL goes is said, however long it is.
	to := "https://example.com:" + strings.Repeat("x", 9000) + "@example.org/" + strings.Repeat("y", 9000)
	if text, _ := textOf(Call{Tool: "fetch_url", Args: args(map[string]any{"url": to})}); !strings.HasSuffix(text, "\nto the host: example.org") {
		t.Errorf("%.200s", text[len(text)-200:])
	}
	// A program on the standard input is shown as a command is.
	program := strings.Repeat("# x\n", 2000) + "rm x\n" + strings.Repeat("# x\n", 1000)
	if text, cut := textOf(Call{Tool: "shell", Args: args(map[string]any{"command": "sh", "stdin": program})}); cut || !strings.Contains(text, "    rm x\n") {
		t.Error("a standard input of 12 KiB is shortened")
	}
	// No rule for what a person didn't see whole.
	p := &person{answers: []Answer{Once}}
	if _, err := (&Gate{Asker: p}).Allow(t.Context(), Call{Tool: "shell", Args: args(map[string]any{"command": "echo " + strings.Repeat("x", 20<<10)})}, nil); err != nil || p.asked[0].Rule != nil {
		t.Error(err, p.asked[0].Rule)
	}
}

func FuzzText(f *testing.F) {
	f.Add("shell", `{"command":"a\u001b"}`)
	f.Add("write_file", `{"path":"`+strings.Repeat("x", 3000)+`","content":"\u202e"}`)
	f.Add("mcp__a__b", "{\"\u200b\": \"\x9b\"}")
	f.Fuzz(func(t *testing.T, tool, args string) {
		text, _ := textOf(Call{Tool: tool, Args: json.RawMessage(args)})
		for _, r := range text {
			if r != '\n' && r != '\t' && visible.Hidden(r) {
				t.Fatalf("%U is in %q", r, text)
			}
		}
	})
}

package session

import (
	"os"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

func readRule(match string, a workshop.Approval) workshop.ApprovalRule {
	return workshop.ApprovalRule{Tool: "read_file", Match: match, Approval: a}
}

// A look beforehand is about files that the worker may read without being asked, and
// about no other.
func TestMayLook(t *testing.T) {
	private := []workshop.ApprovalRule{readRule("/workspace/private/**", workshop.ApprovalAsk)}
	bin := []workshop.ApprovalRule{readRule("/usr/local/bin/**", workshop.ApprovalDeny)}
	for _, c := range []struct {
		name, tools, tool string
		rules             []workshop.ApprovalRule
		args              []any
		want              bool
	}{
		{"a file", "Read, Write", tool.WriteFile, private, []any{"path", "/workspace/f"}, true},
		{"a file that asks", "Read, Write", tool.WriteFile, private, []any{"path", "/workspace/private/f"}, false},
		{"a file that asks, edited", "Read, Edit", tool.EditFile, private, []any{"path", "/workspace/private/f"}, false},
		{"all files are denied", "Read, Write", tool.WriteFile, []workshop.ApprovalRule{readRule("", workshop.ApprovalDeny)}, []any{"path", "f"}, false},
		{"no read_file", "Write", tool.WriteFile, nil, []any{"path", "f"}, false},
		{"another tool", "Read, WebFetch", tool.FetchURL, nil, []any{"url", "https://example.org"}, false},
		{"a line", "Read, Bash", tool.Shell, private, []any{"command", "x"}, true},
		{"a name", "Read, Bash", tool.Shell, private, []any{"argv", []string{"x"}}, true},
		{"a name, where the directories of PATH are denied", "Read, Bash", tool.Shell, bin, []any{"argv", []string{"x"}}, false},
		{"a name, and a PATH", "Read, Bash", tool.Shell, private, []any{"argv", []string{"x"}, "env", map[string]string{"PATH": "/workspace/private"}}, false},
		{"a line, and a PATH", "Read, Bash", tool.Shell, private, []any{"command", "x", "env", map[string]string{"PATH": "/workspace/private"}}, true},
		{"a name, in a directory that asks", "Read, Bash", tool.Shell, private, []any{"argv", []string{"x"}, "cwd", "/workspace/private"}, false},
		{"a line, in a directory that asks", "Read, Bash", tool.Shell, private, []any{"command", "x", "cwd", "/workspace/private/in"}, false},
		{"a path", "Read, Bash", tool.Shell, private, []any{"argv", []string{"/workspace/x"}}, true},
		{"a path that asks", "Read, Bash", tool.Shell, private, []any{"argv", []string{"/workspace/private/x"}}, false},
		{"a path from a directory", "Read, Bash", tool.Shell, private, []any{"argv", []string{"./x"}, "cwd", "/workspace"}, true},
		{"a path from a directory that asks", "Read, Bash", tool.Shell, private, []any{"argv", []string{"private/x"}, "cwd", "/workspace"}, false},
		{"a path up from a directory that asks", "Read, Bash", tool.Shell, private, []any{"argv", []string{"../private/x"}, "cwd", "/workspace/src"}, false},
		{"a path from the working directory that asks", "Read, Bash", tool.Shell, private, []any{"argv", []string{"private/x"}}, false},
		{"a program without read_file", "Bash", tool.Shell, nil, []any{"argv", []string{"x"}}, false},
		{"arguments of another type", "Read, Bash", tool.Shell, nil, []any{"argv", 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := aWorkshop(t, "", "w", "allowed-tools: "+c.tools)
			gate := &approval.Gate{Policy: approval.Policy{Rules: c.rules, Workdirs: map[string]string{"w": "/workspace"}}}
			h := openHost(t, Config{Workshop: ws, Dial: nobody, Gate: gate}, "w")
			if got := (&call{host: h, session: h.roots[0], own: c.tool, args: args(c.args...)}).mayLook(); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Nobody is asked about a program that isn't there, and the error is the call's own.
func TestImpossibleProgramIsNotAsked(t *testing.T) {
	private := []workshop.ApprovalRule{readRule("**/private/**", workshop.ApprovalAsk)}
	for _, c := range []struct {
		name  string
		args  []any
		asked bool
		want  string // of the error
	}{
		{name: "a program", args: []any{"argv", []string{"true"}}, asked: true},
		{name: "a line", args: []any{"command", "true", "cwd", "dir"}, asked: true},
		{name: "no such program", args: []any{"argv", []string{"no-such-program"}}, want: "there is no such program in the worker (PATH="},
		{name: "no such file", args: []any{"argv", []string{"./none"}, "cwd", "dir"}, want: "./none: there is no such program"},
		{name: "not executable", args: []any{"argv", []string{"./f"}}, want: "./f: it is not executable"},
		{name: "no such directory", args: []any{"command", "true", "cwd", "none"}, want: "cwd none: there is no such directory"},
		{name: "a directory that is a file", args: []any{"command", "true", "cwd", "f"}, want: "cwd f: it is not a directory"},
		{name: "where reading asks", args: []any{"argv", []string{"private/none"}}, asked: true, want: "private/none: there is no such program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := aWorkshop(t, "", "w", "allowed-tools: Read, Bash")
			w := startWorker(t, grantOf(ws, "w"))
			if err := os.WriteFile(w.path("f"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"dir", "private"} {
				if err := os.Mkdir(w.path(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var told []string
			for _, asked := range []*countedAsker{{}, nil} { // nil: all calls pass
				gate := &approval.Gate{Policy: approval.Policy{Rules: private, ApproveAll: true, Workdirs: map[string]string{"w": "/workspace"}}}
				if asked != nil {
					gate.Policy.ApproveAll, gate.Asker = false, asked
				}
				_, err := openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: gate}, "w").Call(t.Context(), tool.Shell, args(c.args...), Options{})
				if (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "toolbox")) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				if err != nil {
					told = append(told, err.Error())
				}
				if asked != nil && (asked.asked > 0) != c.asked {
					t.Errorf("asked %d times", asked.asked)
				}
			}
			if len(told) == 2 && told[0] != told[1] {
				t.Errorf("%q, and without a question %q", told[0], told[1])
			}
		})
	}
}

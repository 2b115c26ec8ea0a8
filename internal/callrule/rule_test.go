package callrule_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

func shell(line string) callrule.Call {
	args, _ := json.Marshal(map[string]string{"command": line})
	return callrule.Call{Tool: "shell", Args: args, Workdir: "/workspace"}
}

func call(tool, args string) callrule.Call {
	return callrule.Call{Tool: tool, Args: json.RawMessage(args), Workdir: "/workspace"}
}

func parse(t testing.TB, tool, match string) callrule.Rule {
	t.Helper()
	r, err := callrule.Parse(tool, match)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A rule that grants is only about what is surely meant.
func TestGrants(t *testing.T) {
	for _, c := range []struct {
		tool, match string
		call        callrule.Call
		want        bool
	}{
		{"shell", "git status", shell("git status"), true},
		{"shell", "git status", shell("git  status -s"), true},
		{"shell", "git status", shell(`"git" 'sta'tus`), true},
		{"shell", "git status", call("shell", `{"argv":["git","status","a;b"]}`), true},
		{"shell", "git status", call("shell", `{"argv":["git","status"],"cwd":"/x","stdin":"x"}`), true},
		{"shell", "git status", shell(`git\ status`), false},
		{"shell", "git status", shell("git statusx"), false},
		{"shell", "git status", shell("git"), false},
		{"shell", "git status", shell("echo git status"), false},
		{"shell", "git status", shell("/tmp/git status"), false},
		{"shell", "git status", shell("git status; rm -rf x"), false},
		{"shell", "git status", shell("git status\nrm x"), false},
		{"shell", "git status", shell("git status \\\nx"), false},
		{"shell", "git status", shell("git status $(x)"), false},
		{"shell", "git status", shell("git status `x`"), false},
		{"shell", "git status", shell("git status | sh"), false},
		{"shell", "git status", shell("git status & x"), false},
		{"shell", "git status", shell("git status && x"), false},
		{"shell", "git status", shell("git status > x"), false},
		{"shell", "git status", shell("git status # x"), false},
		{"shell", "git status", shell("GIT_DIR=x git status"), false},
		{"shell", "git status", shell("! git status"), false},
		{"shell", "git status", shell("git {status,push}"), false},
		{"shell", "git status", shell("git status {a,b}"), false},
		{"shell", "git status", shell("git\u00a0status"), false},
		{"shell", "git status", shell("git\u2003status"), false},
		{"shell", "git status", call("shell", `{"argv":["git","status"],"env":{"PATH":"/tmp"}}`), false},
		{"shell", "git status", call("shell", `{"argv":["git","status"],"command":"rm x"}`), false},
		{"shell", "git status", call("shell", `{"command":"git status","COMMAND":"rm x"}`), false},
		{"shell", "git status", call("shell", `{"command":"git status","command":"rm x"}`), false},
		{"shell", "git status", call("shell", `{"command":"git status","other":1}`), false},
		{"shell", "git status", call("shell", `{"argv":["git status"]}`), false},
		{"shell", "git status", call("shell", `["git","status"]`), false},
		{"shell", "git status", call("shell", ``), false},
		{"shell", "./gradlew test", shell("./gradlew test"), true},
		{"shell", "./gradlew test", call("shell", `{"argv":["./gradlew","test"],"cwd":"/tmp/x"}`), false},
		{"shell", `echo "a b"`, shell("echo 'a b' c"), true},
		{"shell", "", shell("git status; rm x"), true},
		{"*", "", shell("git status; rm x"), true},
		{"read_file", "", shell("git status"), false},

		{"write_file", "src/**", call("write_file", `{"path":"src/a/b.go","content":""}`), true},
		{"write_file", "src/**", call("write_file", `{"path":"./src//a.go","content":""}`), true},
		{"write_file", "./src/**", call("write_file", `{"path":"/workspace/src/a.go","content":""}`), true},
		{"write_file", "/workspace/src/**", call("write_file", `{"path":"src/a.go","content":""}`), true},
		{"write_file", "src/*", call("write_file", `{"path":"src/a/b.go","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"src/../x","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"src/x/../a","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"../src/a","content":""}`), false},
		{"write_file", "**", call("write_file", `{"path":"../a","content":""}`), false},
		{"write_file", "**", call("write_file", `{"path":"/etc/passwd","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"/src/a","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"src2/a","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"src/a\u0000b","content":""}`), false},
		{"write_file", "src/**", call("write_file", `{"path":"src/a","PATH":"x","content":""}`), false},
		{"write_file", "src/**", call("edit_file", `{"path":"src/a"}`), false},
		{"write_file", "src/**", callrule.Call{Tool: "write_file", Args: json.RawMessage(`{"path":"/workspace/src/a"}`)}, false},
		{"list_files", "src/**", call("list_files", `{"path":"src"}`), true},
		{"list_files", "src/**", call("list_files", `{"path":"src/a","glob":"**/*.go"}`), true},
		{"list_files", "src/**", call("list_files", `{"path":"src","glob":"../*"}`), false},
		{"list_files", "src/**", call("list_files", `{}`), false},
		{"list_files", "src", call("list_files", `{"path":"src","glob":"**"}`), false},
		{"search_files", "src/*", call("search_files", `{"pattern":"x","path":"src/a"}`), false},
		{"list_files", "**", call("list_files", `{}`), true},
		{"search_files", "*.go", call("search_files", `{"pattern":"x"}`), false},

		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://example.com/x"}`), true},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"http://EXAMPLE.com"}`), true},
		{"fetch_url", "example.com:8080", call("fetch_url", `{"url":"http://example.com:8080/"}`), true},
		{"fetch_url", "*.example.com", call("fetch_url", `{"url":"https://a.example.com/"}`), true},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://example.com:8443/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://example.com.evil.test/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://evil.test/example.com"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://example.com@evil.test/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://u:p@example.com/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://evil.test\\@example.com/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"ftp://example.com/"}`), false},
		{"fetch_url", "example.com", call("fetch_url", `{"url":"https://198.51.100.1/"}`), false},

		{"mcp__db", "", call("mcp__db__query", `{}`), true},
		{"mcp__db__*", "", call("mcp__db__query", `{}`), true},
		{"mcp__db__query", "", call("mcp__db__query", `{}`), true},
		{"mcp__db__query", "", call("mcp__db__query2", `{}`), false},
		{"mcp__db", "", call("mcp__db2__query", `{}`), false},
		{"mcp__db", "", call("mcp__db", `{}`), false},
		{"delegate_fixer", "", call("delegate_fixer", `{}`), true},
		{"delegate_fixer", "", call("delegate_fixer2", `{}`), false},
	} {
		if got := parse(t, c.tool, c.match).Grants(c.call); got != c.want {
			t.Errorf("%s %q, %s %s: %v", c.tool, c.match, c.call.Tool, c.call.Args, got)
		}
	}
}

// A rule that denies is about every command of a line, and may be about what
// can't be known.
func TestRestricts(t *testing.T) {
	const no, maybe, yes = callrule.No, callrule.Maybe, callrule.Yes
	for _, c := range []struct {
		tool, match string
		call        callrule.Call
		want        callrule.Certainty
	}{
		{"shell", "git push", shell("git push -f"), yes},
		{"shell", "git push", shell("x; git push | cat"), yes},
		{"shell", "git push", shell("echo $(git push)"), yes},
		{"shell", "git push", shell("A=1 /usr/bin/git push > x"), yes},
		{"shell", "git push", shell(`g"i"t pu\sh`), yes},
		{"shell", "git push", shell("sh -c 'git push'"), yes},
		{"shell", "git push", shell(`bash -ec "x; git push"`), yes},
		{"shell", "git push", shell("eval git push"), yes},
		{"shell", "git push", shell("sudo -u x env A=1 git push"), yes},
		{"shell", "git push", shell("xargs -n1 sh -c 'git push'"), yes},
		{"shell", "git push", call("shell", `{"argv":["sh","-c","git push"]}`), yes},
		{"shell", "git push", call("shell", `{"argv":["git","push"],"env":{"A":"b"}}`), yes},
		{"shell", "git push", shell("$X push"), maybe},
		{"shell", "git push", shell("git $X"), maybe},
		{"shell", "git push", shell("git {push,x}"), maybe},
		{"shell", "git push", shell("echo git push | sh"), maybe},
		{"shell", "git push", shell("sh -c \"$X\""), maybe},
		{"shell", "git push", shell("if git"), maybe},
		{"shell", "git push", call("shell", `{"command":"x","argv":["git","push"]}`), maybe},
		{"shell", "git push", call("shell", `{`), maybe},
		{"shell", "git push", shell("git pull"), no},
		{"shell", "git push", shell("echo git push"), no},
		{"shell", "git push", shell("git pull $X; ls *"), no},
		{"shell", "git push", shell("sh build.sh"), no},
		{"shell", "git push", shell("git -C /x push"), yes},
		{"shell", "git push", shell("git --no-pager -c a=b push -f"), yes},
		{"shell", "git push", call("shell", `{"argv":["git","-C",".","push"]}`), yes},
		{"shell", "git push", shell("git -C $D push"), maybe},
		{"shell", "git push", shell("git log push"), no},
		{"shell", "git push", shell("git -C x y push"), no},
		{"shell", "git push", shell("bash -o pipefail -c 'git push'"), yes},
		{"shell", "git push", shell("bash -euo pipefail -c 'x; git push'"), yes},
		{"shell", "git push", shell("bash --rcfile x -c 'git push'"), yes},
		{"shell", "git push", shell("sh -c -- 'git push'"), yes},
		{"shell", "git push", shell("sh -c -o pipefail 'git push'"), yes},
		{"shell", "git push", shell("bash -o pipefail"), maybe},
		{"shell", "git push", shell("sh /dev/stdin"), maybe},
		{"shell", "git push", shell(". /dev/stdin"), maybe},
		{"shell", "git push", shell("find . -exec sh -c 'grep x \"$1\"' _ {} ';'"), maybe},
		{"shell", "git push", shell("sh -c 'ls' _ {}"), no},
		{"shell", "git push", shell("echo push | xargs git"), maybe},
		{"shell", "git push", call("shell", `{"argv":["xargs","-I{}","git","{}"],"stdin":"push"}`), maybe},
		{"shell", "git push", shell("env -S 'git push'"), maybe},
		{"shell", "git push", shell("env '-iSgit push'"), maybe},
		{"shell", "git push", shell("env '--split-string=git push'"), maybe},
		{"shell", "git push", shell("watch -n1 'git push'"), yes},
		{"shell", "git push", shell("su me -c 'git push'"), yes},
		{"shell", "git push", shell("su me '--command=git push'"), yes},
		{"shell", "git push", shell("trap 'git push' EXIT"), yes},
		{"shell", "git push", shell("alias g=git; g push"), maybe},
		{"shell", "git push", shell("timeout 5 git commit -m 'git push later'"), no},
		{"shell", "git push", shell("[ -f x ] && [[ -n y ]] && git status"), no},
		// What bash takes for arithmetic and for a condition, others run.
		{"shell", "reboot", shell("((reboot))"), yes},
		{"shell", "reboot", shell("[[ a || reboot ]]"), yes},
		{"shell", "", shell("x"), yes},
		{"read_file", ".env", call("read_file", `{"path":"./.env"}`), yes},
		{"read_file", "**/.env", call("read_file", `{"path":"/workspace/a/.env"}`), yes},
		{"read_file", ".env", call("read_file", `{"path":"a/../.env"}`), yes},
		{"read_file", ".env", call("read_file", `{"path":"a/../b"}`), maybe},
		{"read_file", ".env", call("read_file", `{"path":"a","x":1}`), maybe},
		{"read_file", ".env", call("read_file", `{"path":"a.env"}`), no},
		{"search_files", "secret/**", call("search_files", `{"pattern":"x"}`), maybe},
		{"search_files", "secret/**", call("search_files", `{"pattern":"x","path":"secret/a"}`), yes},
		{"search_files", "secret/**", call("search_files", `{"pattern":"x","path":"src"}`), no},
		{"fetch_url", "evil.test", call("fetch_url", `{"url":"http://u@evil.test:99/"}`), yes},
		{"fetch_url", "evil.test", call("fetch_url", `{"url":"http://[::1"}`), maybe},
		{"fetch_url", "evil.test", call("fetch_url", `{"url":"http://example.com/"}`), no},
	} {
		if got := parse(t, c.tool, c.match).Restricts(c.call); got != c.want {
			t.Errorf("%s %q, %s %s: %v, want %v", c.tool, c.match, c.call.Tool, c.call.Args, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ tool, match, want string }{
		{"Bash", "", "there is no tool"},
		{"", "", "there is no tool"},
		{"delegate_", "", "there is no tool"},
		{"shell", "git status; rm", "isn't the beginning of one plain command"},
		{"shell", "git *", "isn't the beginning of one plain command"},
		{"shell", " ", "isn't the beginning of one plain command"},
		{"*", "x", "has no match"},
		{"mcp__a__b", "x", "has no match"},
		{"delegate_x", "y", "has no match"},
		{"write_file", "../x", "leaves its directory"},
		{"write_file", "~/x", "begins with ~"},
		{"write_file", "x/", "ends with a slash"},
		{"write_file", "[", "can't be read"},
		{"write_file", strings.Repeat("{a,b}", 9), "too many alternatives"},
		{"fetch_url", "https://example.com", "is not a host"},
		{"fetch_url", "example.com:x", "has no port"},
	} {
		r, err := callrule.Parse(c.tool, c.match)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.tool, c.match, err)
		}
		// It grants nothing, and stops every call of its tool.
		if x := call(c.tool, `{}`); r.Grants(x) || c.tool != "" && c.tool != "*" && r.Restricts(x) != callrule.Yes {
			t.Errorf("%s %q: grants %v, restricts %v", c.tool, c.match, r.Grants(x), r.Restricts(x))
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		call callrule.Call
		want string
		ok   bool
	}{
		{shell("git push origin main"), "git push", true},
		{shell("git -C /x push"), "git -C /x push", true},
		{shell("git rebase -x 'rm x'"), `git rebase -x "rm x"`, true},
		{shell("npm run build"), "npm run build", true},
		{shell("ls -la"), "ls -la", true},
		{shell("rm build"), "rm build", true},
		{shell(`sh -c 'echo "$x"'`), `sh -c 'echo "$x"'`, true},
		{shell("python3 x.py"), "python3 x.py", true},
		{shell("sudo ls"), "sudo ls", true},
		{shell("sh"), "", false},
		{shell("/bin/bash"), "", false},
		{shell("python3.12"), "", false},
		{shell("env"), "", false},
		{call("shell", `{"argv":["bash","-e"],"stdin":"ls"}`), "", false},
		{call("shell", `{"argv":["git","apply"],"stdin":"x"}`), "git apply", true},
		{shell("gh api x"), "gh api x", true},
		{shell("git push; x"), "", false},
		{shell("A=1 git push"), "", false},
		{call("shell", `{"argv":["git","push"],"env":{"A":"b"}}`), "", false},
		{call("write_file", `{"path":"src/a.go"}`), "src/**", true},
		{call("write_file", `{"path":"/workspace/src/a.go"}`), "src/**", true},
		{call("write_file", `{"path":"src/[x]/a.go"}`), `src/\[x\]/**`, true},
		{call("write_file", `{"path":"a*.go"}`), `a\*.go`, true},
		{call("write_file", `{"path":"/etc/passwd"}`), "/etc/passwd", true},
		{call("write_file", `{"path":"../a/b"}`), "", false},
		{call("list_files", `{}`), "**", true},
		{call("search_files", `{"pattern":"x","path":"src"}`), "src/**", true},
		{call("fetch_url", `{"url":"https://Example.com/x"}`), "example.com", true},
		{call("fetch_url", `{"url":"https://example.com:99/x"}`), "example.com:99", true},
		{call("fetch_url", `{"url":"https://198.51.100.1/x"}`), "", false},
		{call("mcp__db__query", `{"q":"x"}`), "", true},
		{call("delegate_x", `{}`), "", true},
		{call("other", `{}`), "", false},
	} {
		if got, ok := callrule.Suggest(c.call); got != c.want || ok != c.ok {
			t.Errorf("%s %s: %q %v", c.call.Tool, c.call.Args, got, ok)
		}
	}
}

// Whatever is called: no panic, what is suggested grants the call, and a call
// that a rule grants is one that it restricts.
func FuzzRule(f *testing.F) {
	f.Add("shell", "git status", `{"command":"git status"}`, "/workspace")
	f.Add("shell", `a "b"`, `{"argv":["sh","-c","x $(y)"]}`, "")
	f.Add("write_file", "src/{a,b}/**", `{"path":"../x"}`, "/")
	f.Add("search_files", "[a-z]*", `{"path":"/x/..","pattern":"("}`, "/workspace")
	f.Add("fetch_url", "*.example.com:80-90", `{"url":"http://a.example.com:85"}`, "")
	f.Add("mcp__a", "", `{}`, "")
	f.Fuzz(func(t *testing.T, tool, match, args, workdir string) {
		c := callrule.Call{Tool: tool, Args: json.RawMessage(args), Workdir: workdir}
		if match, ok := callrule.Suggest(c); ok {
			if r, err := callrule.Parse(tool, match); err != nil || !r.Grants(c) || r.Restricts(c) != callrule.Yes {
				t.Fatalf("%s %q for %s: %v, grants %v, restricts %v", tool, match, args, err, r.Grants(c), r.Restricts(c))
			}
		}
		r, err := callrule.Parse(tool, match)
		if r.Grants(c) && (err != nil || r.Restricts(c) != callrule.Yes) {
			t.Fatalf("%s %q grants %s: %v, restricts %v", tool, match, args, err, r.Restricts(c))
		}
	})
}

// What can be made costly is bounded (B60).
func TestCostly(t *testing.T) {
	push := parse(t, "shell", "git push")
	for _, line := range []string{
		strings.Repeat("eval ", 12000) + "x", "env " + strings.Repeat("eval ", 12000) + "x", strings.Repeat("sh -c ", 10000) + "x",
		strings.Repeat("env ", 16000) + "x", strings.Repeat("$(", 90), strings.Repeat("<<a ", 16000), strings.Repeat("a;", 32000),
	} {
		began := testutil.Now()
		push.Restricts(shell(line))
		if took := testutil.Since(began); took > 10*time.Second {
			t.Errorf("%.20s… takes %s", line, took)
		}
	}
}

package approval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

const (
	auto = workshop.ApprovalAuto
	ask  = workshop.ApprovalAsk
	deny = workshop.ApprovalDeny
)

func shell(line string) Call {
	args, _ := json.Marshal(map[string]string{"command": line})
	return Call{Worker: "reviewer", Tool: "shell", Args: args}
}

func rule(tool, match string, a workshop.Approval) workshop.ApprovalRule {
	r := workshop.ApprovalRule{Tool: tool, Match: match, Approval: a}
	r.At = diag.Source{Range: diag.Range{Filename: "workshop.yaml", Start: diag.Pos{Line: 7}}}
	return r
}

func rules(list ...workshop.ApprovalRule) []workshop.ApprovalRule { return list }

func TestDecide(t *testing.T) {
	read := Call{Worker: "reviewer", Tool: "read_file", Args: json.RawMessage(`{"path":"x"}`)}
	mcp := Call{Worker: "reviewer", Tool: "mcp__db__query", Args: json.RawMessage(`{}`)}
	status := rules(rule("shell", "git status", auto))
	for name, c := range map[string]struct {
		policy Policy
		call   Call
		want   workshop.Approval
		why    string
	}{
		"zero: reading":      {Policy{}, read, auto, "only reads"},
		"zero: shell":        {Policy{}, shell("ls"), ask, "no rule"},
		"zero: fetch":        {Policy{}, Call{Tool: "fetch_url", Args: json.RawMessage(`{"url":"https://example.com"}`)}, ask, ""},
		"zero: mcp":          {Policy{}, mcp, ask, ""},
		"zero: unknown tool": {Policy{}, Call{Tool: "read_file2"}, ask, ""},
		"zero: no tool":      {Policy{}, Call{}, ask, ""},

		"default auto":          {Policy{Given: true, Default: auto, Max: auto}, shell("rm -rf x; y"), auto, "approvals.default is auto"},
		"default auto, capped":  {Policy{Given: true, Default: auto}, shell("ls"), ask, "approvals_max is ask"},
		"default auto, reading": {Policy{Given: true, Default: auto}, read, auto, ""},
		"default ask, reading":  {Policy{Given: true, Default: ask, Max: auto}, read, ask, ""},
		"default deny":          {Policy{Given: true, Default: deny, Max: auto, ApproveAll: true}, shell("ls"), deny, "approvals.default is deny"},
		"default unknown":       {Policy{Given: true, Default: "yes", Max: auto}, shell("ls"), ask, ""},
		"default empty":         {Policy{Given: true, Max: auto}, read, ask, ""},

		"rule":                    {Policy{Rules: status, Max: auto}, shell("git status -s"), auto, `workshop.yaml:7, the rule shell "git status": auto`},
		"rule, operators":         {Policy{Rules: status, Max: auto}, shell("git status; rm x"), ask, "no rule"},
		"rule, operators, deny":   {Policy{Rules: status, Given: true, Default: deny, Max: auto}, shell("git status; rm x"), deny, ""},
		"rule, capped":            {Policy{Rules: status}, shell("git status"), ask, "approvals_max is ask"},
		"rule, capped by unknown": {Policy{Rules: status, Max: "all"}, shell("git status"), ask, ""},
		"rule, accepted":          {Policy{Rules: status, Accepted: []Rule{{"shell", "git status"}}}, shell("git status"), auto, ""},
		"accepted, not in file":   {Policy{Accepted: []Rule{{"shell", "git status"}}}, shell("git status"), ask, ""},
		"accepted is another":     {Policy{Rules: rules(rule("shell", "git", auto)), Accepted: []Rule{{"shell", "git status"}}}, shell("git status"), ask, ""},
		"accepted, max deny":      {Policy{Rules: status, Accepted: []Rule{{"shell", "git status"}}, Max: deny}, shell("git status"), deny, "approvals_max is deny"},
		"max deny":                {Policy{Max: deny, ApproveAll: true}, read, deny, "approvals_max is deny"},
		"all of shell":            {Policy{Rules: rules(rule("shell", "", auto)), Max: auto}, shell("a; b"), auto, ""},
		"star":                    {Policy{Rules: rules(rule("*", "", auto)), Max: auto}, mcp, auto, ""},

		"first decides":        {Policy{Rules: rules(rule("shell", "git push", deny), rule("shell", "git", auto)), Max: auto}, shell("git push"), deny, ""},
		"first decides, other": {Policy{Rules: rules(rule("shell", "git", auto), rule("shell", "git push", deny)), Max: auto}, shell("git push"), auto, ""},
		"deny in a line":       {Policy{Rules: rules(rule("shell", "git push", deny), rule("shell", "", auto)), Max: auto}, shell("ls; git push"), deny, ""},
		"deny, maybe":          {Policy{Rules: rules(rule("shell", "git push", deny), rule("shell", "", auto)), Max: auto}, shell("ls; $X push"), ask, "it may be what"},
		"deny, unreadable":     {Policy{Rules: rules(rule("shell", "git push", deny), rule("shell", "", auto)), Max: auto}, shell("if ls"), ask, "it may be what"},
		"deny, maybe, deny":    {Policy{Rules: rules(rule("shell", "git push", deny), rule("shell", "", deny)), Max: auto}, shell("$X"), deny, ""},
		"ask in a line":        {Policy{Rules: rules(rule("shell", "git push", ask), rule("shell", "", auto)), Max: auto}, shell("ls; git push"), ask, ""},
		"ask, maybe":           {Policy{Rules: rules(rule("shell", "git push", ask), rule("shell", "", auto)), Max: auto}, shell("$X"), ask, ""},
		"unknown approval":     {Policy{Rules: rules(rule("shell", "", "allow"), rule("*", "", auto)), Max: auto}, shell("ls"), ask, ""},
		"unreadable auto":      {Policy{Rules: rules(rule("mcp__db", "x", auto)), Max: auto}, mcp, ask, "no rule"},
		"unreadable deny":      {Policy{Rules: rules(rule("mcp__db", "x", deny)), Max: auto}, mcp, deny, ""},
		"unreadable ask":       {Policy{Rules: rules(rule("shell", "a;b", ask), rule("*", "", auto)), Max: auto}, shell("ls"), ask, ""},

		"approve all":            {Policy{ApproveAll: true}, shell("a; b"), auto, "--approve-all"},
		"approve all, capped":    {Policy{Rules: status, ApproveAll: true}, shell("git status"), auto, "--approve-all"},
		"approve all, deny":      {Policy{Rules: rules(rule("*", "", deny)), ApproveAll: true, Max: auto}, read, deny, ""},
		"strict":                 {Policy{Strict: true}, shell("ls"), deny, "--strict"},
		"strict, auto":           {Policy{Strict: true}, read, auto, ""},
		"strict and approve all": {Policy{Strict: true, ApproveAll: true}, shell("ls"), deny, "--strict"},
	} {
		v := c.policy.Decide(c.call)
		if v.Decision != c.want || !strings.Contains(v.Why, c.why) || v.Why == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", name, v.Decision, v.Why, c.want, c.why)
		}
	}
}

// Paths are compared with the worker's own working directory.
func TestDecideWorkdir(t *testing.T) {
	p := Policy{Rules: rules(rule("write_file", "src/**", auto)), Max: auto, Workdirs: map[string]string{"a": "/workspace", "b": "/other"}}
	for worker, want := range map[string]workshop.Approval{"a": auto, "b": ask, "c": ask} {
		if v := p.Decide(Call{Worker: worker, Tool: "write_file", Args: json.RawMessage(`{"path":"/workspace/src/x"}`)}); v.Decision != want {
			t.Errorf("%s: %s", worker, v.Decision)
		}
	}
}

// Any policy and call: no panic, one of the three decisions; what the user caps
// never passes but by the user's own word; a deny of the file stays.
func FuzzDecide(f *testing.F) {
	f.Add("shell", "git status", "auto", "shell", `{"command":"git status"}`, "ask", "auto", byte(0))
	f.Add("write_file", "src/**", "deny", "write_file", `{"path":"src/../x"}`, "auto", "", byte(7))
	f.Add("*", "", "auto", "mcp__a__b", `{`, "", "ask", byte(3))
	f.Fuzz(func(t *testing.T, tool, match, approval, called, args, def, max string, flags byte) {
		p := Policy{
			Rules: rules(rule(tool, match, workshop.Approval(approval))), Default: workshop.Approval(def), Max: workshop.Approval(max),
			Given: flags&1 != 0, ApproveAll: flags&2 != 0, Strict: flags&4 != 0,
		}
		c := Call{Worker: "w", Tool: called, Args: json.RawMessage(args)}
		v := p.Decide(c)
		if v.Decision != auto && v.Decision != ask && v.Decision != deny || v.Why == "" {
			t.Fatalf("%+v", v)
		}
		if v.Decision == auto && !p.ApproveAll && max != "auto" && !readsInside(called) {
			t.Fatalf("passes beyond the cap: %+v", v)
		}
		if p.Strict && v.Decision == ask {
			t.Fatalf("asks with --strict: %+v", v)
		}
		p.ApproveAll, p.Strict, p.Max = true, false, auto
		if was := (&Policy{Rules: p.Rules, Default: p.Default, Given: p.Given, Max: auto}).Decide(c); was.Decision == deny && p.Decide(c).Decision != deny {
			t.Fatalf("--approve-all makes more than a yes of %+v", was)
		}
	})
}

package workshop

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop/worker"
)

// check reads a rule of approvals as the host reads it when it decides.
func (a *approvalForm) check(d *decoder) bool {
	match := ""
	if a.Match != nil {
		if match = a.Match.V; match == "" {
			d.fail(a.Match.Source.Range, "bad-match", "the match is empty", "remove it for a rule about every call")
			return false
		}
	}
	_, err := callrule.Parse(a.Tool.V, match)
	bad, ok := errors.AsType[*callrule.Error](err)
	switch {
	case !ok:
		return true
	case !bad.Tool:
		d.fail(a.Match.Source.Range, "bad-match", bad.Summary, bad.Hint)
		return false
	}
	hint := bad.Hint
	name, _, _ := strings.Cut(a.Tool.V, "(")
	if ours, ok := worker.ToolName(name); ok {
		hint = "write tool: " + ours
		if name != a.Tool.V {
			hint += ", and the text in parentheses as match"
		}
	} else if near := nearest(a.Tool.V, append(callrule.Names(), "delegate_", "mcp__")); near != "" && !strings.HasSuffix(near, "_") {
		hint = fmt.Sprintf("did you mean %q? %s", near, bad.Hint)
	}
	d.fail(a.Tool.Source.Range, "unknown-tool", fmt.Sprintf("there is no tool %q", clip(a.Tool.V)), hint)
	return false
}

// approvalNames refuses rules about servers and workers that there aren't: one
// that denies would do nothing.
func approvalNames(w *Workshop, p *problems) {
	var servers, workers []string
	for _, s := range w.MCP {
		servers = append(servers, s.Name)
	}
	for i := range w.Workers {
		workers = append(workers, w.Workers[i].Name)
	}
	for _, r := range w.Approvals.Rules {
		if server, _, ok := tool.SplitMCP(r.Tool); ok {
			unknownName(r, "MCP server", server, servers, p)
		} else if name, ok := strings.CutPrefix(r.Tool, callrule.DelegatePrefix); ok {
			unknownName(r, "worker", name, workers, p)
		}
	}
}

func unknownName(r ApprovalRule, what, name string, names []string, p *problems) {
	if slices.Contains(names, name) {
		return
	}
	hint := fmt.Sprintf("the workshop has no %s", what)
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) > 0 {
		hint = what + "s: " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	p.add(diag.Diagnostic{Severity: diag.Error, Code: "unknown-tool", Range: r.At.Range,
		Summary: fmt.Sprintf("the rule is about %s, but there is no %s %q", clip(r.Tool), what, clip(name)), Hint: hint})
}

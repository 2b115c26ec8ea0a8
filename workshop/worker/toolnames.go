package worker

import (
	"strings"

	"github.com/agext/levenshtein"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
)

// toolNames lists the tools of a workshop, in the order of their documentation.
func toolNames() []string {
	return []string{tool.ReadFile, tool.WriteFile, tool.EditFile, tool.ListFiles, tool.SearchFiles, tool.Shell, tool.FetchURL}
}

// ToolName returns our name of a tool: for our own names, and for those of Claude
// Code.
func ToolName(name string) (string, bool) { return ourTool(name) }

// ourTool returns our tool for a name of a list: our own names, those of Claude
// Code (its tools reference; MultiEdit and LS are of older versions), and tools
// of MCP servers. Which servers there are knows the workshop.
func ourTool(name string) (string, bool) {
	switch name {
	case tool.ReadFile, tool.WriteFile, tool.EditFile, tool.ListFiles, tool.SearchFiles, tool.Shell, tool.FetchURL:
		return name, true
	case "Read":
		return tool.ReadFile, true
	case "Write":
		return tool.WriteFile, true
	case "Edit", "MultiEdit":
		return tool.EditFile, true
	case "LS", "Glob":
		return tool.ListFiles, true
	case "Grep":
		return tool.SearchFiles, true
	case "Bash":
		return tool.Shell, true
	case "WebFetch":
		return tool.FetchURL, true
	}
	name = strings.TrimSuffix(name, "__*") // all tools of a server
	_, _, ok := tool.SplitMCP(name)
	if !ok {
		return "", false
	}
	return name, true
}

// absentTool says why a tool that exists elsewhere isn't offered here; "" for
// a name that nobody knows.
func absentTool(name string) string {
	switch name {
	case "Agent", "Task":
		return "workers of the workshop are named by delegates-to"
	case "WebSearch":
		return "a search needs a service outside of the workshop"
	case "NotebookEdit", "NotebookRead", "TodoWrite", "TodoRead", "BashOutput", "KillShell", "KillBash",
		"Skill", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "SlashCommand", "LSP", "PowerShell",
		"Monitor", "ToolSearch", "ListMcpResourcesTool", "ReadMcpResourceTool":
		return "it is a tool of Claude Code itself"
	case "dynamic_agents":
		return "workers are named in workshop.yaml, none is made while it runs"
	}
	if strings.HasPrefix(name, "mcp__") {
		return "a tool of an MCP server is written mcp__SERVER or mcp__SERVER__TOOL"
	}
	return ""
}

// nearest returns the one of the words that is most like s, if any is like it.
func nearest(s string, words []string) string {
	best, least := "", 0
	for _, w := range words {
		d := levenshtein.Distance(strings.ToLower(s), strings.ToLower(w), nil)
		if (d <= max(1, min(len(s), len(w))/3) || swapped(s, w)) && (best == "" || d < least) {
			best, least = w, d
		}
	}
	return best
}

// swapped reports whether two letters next to each other changed places.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[:i] == b[:i] && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
			return true
		}
	}
	return false
}

// near is nearest while warnings are still told one by one.
func (f *file) near(s string, words []string) string {
	if f.count[diag.Warning] >= maxReports {
		return ""
	}
	return nearest(s, words)
}

// toolWords are the names that a typo may have meant.
func toolWords() []string {
	return append([]string{"Read", "Write", "Edit", "Glob", "Grep", "LS", "Bash", "WebFetch"}, toolNames()...)
}

package worker

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/tool"
)

// KeyTables returns the keys of worker files as Markdown, and where the files are
// found.
func KeyTables() string {
	var b strings.Builder
	b.WriteString("\n| key | type | default | meaning | example |\n|---|---|---|---|---|\n")
	for _, k := range markdownKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", k.name, k.kind, k.absent, k.doc, k.example)
	}
	b.WriteString("\nThe file of the worker `NAME` is the one of these that exists:\n\n| file | format | tools are listed in |\n|---|---|---|\n")
	for _, c := range Candidates("name") {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(c.Path, "name", "NAME"), c.Dialect.title(), toolKeys[c.Dialect])
	}
	b.WriteString("\nTools, by our name or that of Claude Code:\n\n| tool | also written | limit |\n|---|---|---|\n")
	for _, name := range toolNames() {
		var also []string
		for _, word := range toolWords() {
			if ours, _ := ourTool(word); ours == name && word != name {
				also = append(also, "`"+word+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(also, ", "), toolLimits[name])
	}
	return b.String()
}

// toolKeys are the keys of each format that limit a worker's tools.
var toolKeys = map[Dialect]string{
	Markdown: "`allowed-tools`", LLMDoWorker: "`toolsets`", LLMDoAgent: "`tools`, `toolsets`", ClaudeAgent: "`tools`", AgentSkill: "`allowed-tools`",
}

// toolLimits are examples of entries that offer a part of a tool.
var toolLimits = map[string]string{tool.Shell: "`Bash(git:*)`: commands that begin so", tool.FetchURL: "`WebFetch(domain:example.org)`: that host"}

package worker

import (
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
)

// Definition is a worker in the one neutral form that all dialects map to.
type Definition struct {
	// Name as the file gives it; the dialect's rule where it gives none.
	Name        string
	Description string
	// Dialect is the format that the file was read as.
	Dialect Dialect
	// Instructions is the body: the prompt. It is data and never executed.
	Instructions string
	// Tools is the limit of what the worker is offered. Empty: no tools. Where
	// a tool is listed more than once, each entry allows what its Pattern says.
	Tools []Tool
	// DelegatesTo names workers of the same workshop.
	DelegatesTo []Reference
	// Toolsets are the entries of an llm-do `toolsets` that are not a toolset of
	// llm-do itself. There such an entry may be the name of another worker:
	// the loader of the workshop decides, and warns of the others.
	Toolsets []Reference
	// Model is kept for the orchestrator; the workshop does not use it.
	Model string
	// ResultType is a JSON Schema (its bytes), or nil.
	ResultType []byte
	// ResultFile is the path of a JSON Schema, relative to the worker file,
	// where the file names one instead of writing it down; the zero value
	// means none. Whoever has the file system reads it into ResultType.
	ResultFile Reference
	// Extra holds the keys that the dialect has and we do not use, and unknown
	// ones, as YAML text by key.
	Extra  map[string]string
	Source diag.Source
}

// Reference is a name together with the place where it is written.
type Reference struct {
	Name   string
	Source diag.Source
}

// Tool is one entry of a worker's tool list.
type Tool struct {
	// Name is ours: read_file write_file edit_file list_files search_files
	// shell fetch_url.
	Name string
	// Pattern limits the tool: `git:*` of Bash(git:*), `domain:x` of
	// WebFetch(domain:x); empty: no limit.
	Pattern string
	// Written is the entry as the file has it.
	Written string
	Source  diag.Source
}

// Offers are the definition's tools as a grant has them (B41), in the order of
// the file; nil for none.
func (d *Definition) Offers() []tool.Offer {
	var out []tool.Offer
	for _, t := range d.Tools {
		out = append(out, tool.Offer{Name: t.Name, Limit: t.Pattern})
	}
	return out
}

// Dialect is a format of worker files.
type Dialect string

// The dialects.
const (
	Markdown    Dialect = "markdown"      // workers/NAME.md, ours
	LLMDoWorker Dialect = "llm-do-worker" // NAME.worker
	LLMDoAgent  Dialect = "llm-do-agent"  // NAME.agent
	ClaudeAgent Dialect = "claude-agent"  // .claude/agents/NAME.md
	AgentSkill  Dialect = "agent-skill"   // skills/NAME/SKILL.md
	// InlineWorker is a worker that workshop.yaml defines itself.
	InlineWorker Dialect = "inline"
)

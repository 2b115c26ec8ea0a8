package worker

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// Candidate is a place where a worker's file may be.
type Candidate struct {
	Path    string // relative to the folder of workshop.yaml, with slashes
	Dialect Dialect
}

// nameRule is the rule for workers' names in words, for messages.
const nameRule = "lower-case letters, digits, - and _, at most 63, beginning with a letter or digit"

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`) })

// ValidName reports whether a worker may be called so. The rule is that of
// Compose services, shortened to what a DNS label and a container's name hold;
// it lets no path separator through.
func ValidName(name string) bool { return nameForm().MatchString(name) }

// Candidates lists where the file of the worker may be, in the order in which
// the places are named to people. It is nil for a name that is not valid:
// a name is never a path.
func Candidates(name string) []Candidate {
	if !ValidName(name) {
		return nil
	}
	return []Candidate{
		{"workers/" + name + ".md", Markdown},
		{"workers/" + name + ".worker", LLMDoWorker},
		{"workers/" + name + "/" + name + ".worker", LLMDoWorker},
		{name + ".agent", LLMDoAgent},
		{".claude/agents/" + name + ".md", ClaudeAgent},
		{"skills/" + name + "/SKILL.md", AgentSkill},
		{".claude/skills/" + name + "/SKILL.md", AgentSkill},
	}
}

// DialectOf returns by its path the format of a file; "" where the path
// doesn't say it.
func DialectOf(file string) Dialect {
	file = path.Clean(strings.ReplaceAll(file, `\`, "/"))
	switch {
	case path.Base(file) == "SKILL.md":
		return AgentSkill
	case path.Ext(file) == ".worker":
		return LLMDoWorker
	case path.Ext(file) == ".agent":
		return LLMDoAgent
	case path.Ext(file) != ".md":
		return ""
	case strings.Contains("/"+path.Dir(file)+"/", "/.claude/agents/"):
		return ClaudeAgent
	}
	return Markdown
}

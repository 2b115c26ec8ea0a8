package grant

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

func (l *lines) definition(d *worker.Definition) {
	for _, t := range d.Tools {
		text := ToolText(t)
		l.add(Tool, text, text, t.Source)
	}
	for _, to := range d.DelegatesTo {
		l.add(Delegate, to.Name, to.Name, to.Source)
	}
	l.add(Model, "", literal(l.form, d.Model), d.Source)
}

// everyone returns what the workshop says for all of its workers.
func everyone(w *workshop.Workshop, f Form) []Line {
	l := lines{worker: Everyone, form: f}
	l.add(Isolation, "", string(w.Isolation.V), w.Isolation.Source)
	l.add(Approval, "", DefaultText(&w.Approvals), w.Approvals.Default.Source)
	for i, r := range w.Approvals.Rules {
		// Their order decides.
		l.add(Approval, fmt.Sprintf("%04d", i+1), fmt.Sprintf("rule %d: %s", i+1, DecisionText(r.Tool, r.Match, r.Approval)), r.At)
	}
	for i := range w.MCP {
		l.add(MCP, w.MCP[i].Name, ServerText(&w.MCP[i]), w.MCP[i].At)
	}
	return l.sorted()
}

// ToolText is a tool, and what it is limited to: "shell git log:*".
func ToolText(t worker.Tool) string {
	if t.Pattern == "" {
		return t.Name
	}
	return t.Name + " " + t.Pattern
}

// DefaultText is what is decided on calls that no rule is about.
func DefaultText(a *workshop.Approvals) string {
	out := "default " + string(a.Default.V)
	if a.Default.Source.Range.Filename == "" && a.Default.V == workshop.ApprovalAsk {
		out += ", but not for reading" // written out, it counts for reading, too
	}
	return out
}

// CallsText are the calls that a rule of approvals is about: `shell "git status"`.
func CallsText(tool, match string) string {
	if match == "" {
		return tool
	}
	return tool + " " + strconv.Quote(match)
}

// DecisionText is a rule of approvals: `shell "git status": auto`.
func DecisionText(tool, match string, decision workshop.Approval) string {
	return CallsText(tool, match) + ": " + string(decision)
}

// CommandText is the command of an MCP server.
func CommandText(s *workshop.MCPServer) string {
	words := make([]string, len(s.Command))
	for i, word := range s.Command {
		words[i] = shellquote.Quote(word)
	}
	return strings.Join(words, " ")
}

// ModelText is a model server: what runs, with which file, and its limits.
func ModelText(s *workshop.ModelService) string {
	out := s.Name + ": " + s.Server + " of " + s.Image.V + ", " + s.File.V + " with sha256 " + s.SHA256.V
	if s.Context.V > 0 || s.Context.Source.Template != "" {
		out += ", context " + asWritten(s.Context)
	}
	r := &s.Resources
	return out + ", memory " + asWritten(r.Memory) + ", cpu " + asWritten(r.CPU) + ", pids " + asWritten(r.PIDs)
}

// asWritten is a value, or the text with variables that it comes from.
func asWritten[T any](v workshop.Value[T]) string {
	if v.Source.Template != "" {
		return v.Source.Template
	}
	return fmt.Sprint(v.V)
}

// ServerText is an MCP server: its command, and its variables.
func ServerText(s *workshop.MCPServer) string {
	out := s.Name + ": " + CommandText(s)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		out += ", " + name + "=" + strconv.Quote(s.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		out += ", " + name + " from the secret " + s.Secrets[name]
	}
	return out
}

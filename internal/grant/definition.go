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
		text := t.Name
		if t.Pattern != "" {
			text += " " + t.Pattern
		}
		l.add(Tool, text, text, t.Source)
	}
	for _, to := range d.DelegatesTo {
		l.add(Delegate, to.Name, to.Name, to.Source)
	}
}

// everyone returns what the workshop says for all of its workers.
func everyone(w *workshop.Workshop, f Form) []Line {
	l := lines{worker: Everyone, form: f}
	l.add(Isolation, "", string(w.Isolation.V), w.Isolation.Source)
	usual := "default " + string(w.Approvals.Default.V)
	if w.Approvals.Default.Source.Range.Filename == "" {
		usual += ", but not for reading" // written out, it counts for reading, too
	}
	l.add(Approval, "", usual, w.Approvals.Default.Source)
	for i, r := range w.Approvals.Rules {
		which := r.Tool
		if r.Match != "" {
			which += " " + strconv.Quote(r.Match)
		}
		// Their order decides.
		l.add(Approval, fmt.Sprintf("%04d", i+1), fmt.Sprintf("rule %d: %s: %s", i+1, which, r.Approval), r.At)
	}
	for i := range w.MCP {
		l.add(MCP, w.MCP[i].Name, serverText(&w.MCP[i]), w.MCP[i].At)
	}
	return l.sorted()
}

// serverText is the command of an MCP server, and its variables.
func serverText(s *workshop.MCPServer) string {
	words := make([]string, len(s.Command))
	for i, word := range s.Command {
		words[i] = shellquote.Quote(word)
	}
	out := s.Name + ": " + strings.Join(words, " ")
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		out += ", " + name + "=" + strconv.Quote(s.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		out += ", " + name + " from the secret " + s.Secrets[name]
	}
	return out
}

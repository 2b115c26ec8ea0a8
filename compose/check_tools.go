package compose

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// tools checks B41: the gate is told once what the worker's tools may do, and
// that is nothing but what its file lists and its workshop declares.
func (k *checker) tools(s *types.ServiceConfig) {
	w := k.c.definition(s.Name)
	var told []string
	for i, word := range s.Entrypoint {
		if i > 0 && s.Entrypoint[i-1] == "--tools" {
			told = append(told, word)
		}
		k.must(!strings.HasPrefix(word, "--tools="), "B41", "the tools are told as %q", word)
	}
	if len(told) != 1 {
		k.add("B41", "what its tools may do is given %d times", len(told))
		return
	}
	var g struct {
		Worker  string                                `json:"worker"`
		Tools   []struct{ Name, Limit string }        `json:"tools"`
		Timeout string                                `json:"timeout"`
		MCP     map[string]struct{ Command []string } `json:"mcp"`
	}
	d := json.NewDecoder(strings.NewReader(told[0]))
	if err := d.Decode(&g); err != nil || d.More() {
		k.add("B41", "what its tools may do can't be read: %q", told[0])
		return
	}
	k.must(g.Worker == s.Name, "B41", "the tools are those of %q", g.Worker)
	if w == nil {
		return
	}
	for _, t := range g.Tools {
		listed := false
		for _, have := range w.Definition.Tools {
			listed = listed || have.Name == t.Name && have.Pattern == t.Limit
		}
		k.must(listed, "B41", "the tool %s(%s) is not one of the worker's file", t.Name, t.Limit)
	}
	for _, name := range sortedKeys(g.MCP) {
		i := slices.IndexFunc(k.c.workshop.MCP, func(s workshop.MCPServer) bool { return s.Name == name })
		k.must(i >= 0 && slices.Equal(g.MCP[name].Command, k.c.workshop.MCP[i].Command), "B41", "the MCP server %s is not one of the workshop", name)
	}
	if limit := w.Container.Resources.Timeout.V; limit > 0 {
		k.must(g.Timeout == limit.String(), "B41", "a call may take %q, not %s", g.Timeout, limit)
	}
}

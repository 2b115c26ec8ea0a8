package diff

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
)

// TestEndpointRows: whatever an endpoint, a credential or a line of agents grants beyond base
// is widened, and what only narrows isn't (B33, B34).
func TestEndpointRows(t *testing.T) {
	const line = `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h, credential: c}`
	const git = `{host: h.example, at: a, git: {read: [a/b], push: {"a/b": ["x/*"]}}, credential: c}`
	const agents = "      agents: [{ssh: k, hosts: [h.example]}]\n"
	for _, c := range []struct {
		name               string
		base, head         string
		agentsWas, agentIs string
		widened            bool
	}{
		{name: "itself", base: line, head: line},
		{name: "fewer requests", base: `{host: h.example, at: a, requests: ["GET,PUT /x/**"], credential: c}`, head: `{host: h.example, at: a, requests: ["GET /x/y"], credential: c}`},
		{name: "more requests", base: line, head: `{host: h.example, at: a, requests: ["GET /x", "PUT /x"], upload: 1M/h, credential: c}`, widened: true},
		{name: "more uploads", base: line, head: `{host: h.example, at: a, requests: ["GET /x"], credential: c}`, widened: true},
		{name: "a credential", base: `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h}`, head: line, widened: true},
		{name: "another credential", base: line, head: `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h, credential: d}`, widened: true},
		{name: "credentials of the worker's own", base: line, head: `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h}`, widened: true},
		{name: "private addresses", base: line, head: `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h, private: true, credential: c}`, widened: true},
		{name: "encoded slashes", base: line, head: `{host: h.example, at: a, requests: ["GET /x"], upload: 1M/h, encoded_slash: true, credential: c}`, widened: true},
		{name: "another port", base: line, head: `{host: h.example, port: 8443, at: a, requests: ["GET /x"], upload: 1M/h, credential: c}`, widened: true},
		{name: "the host itself", base: line, head: `h.example`, widened: true},
		{name: "fewer refs", base: git, head: `{host: h.example, at: a, git: {read: [a/b], push: {"a/b": ["x/y"]}}, credential: c}`},
		{name: "other refs", base: git, head: `{host: h.example, at: a, git: {read: [a/b], push: {"a/b": ["y/*"]}}, credential: c}`, widened: true},
		{name: "deleting", base: git, head: `{host: h.example, at: a, git: {read: [a/b], push: {"a/b": ["x/*"]}, delete: {"a/b": ["x/*"]}}, credential: c}`, widened: true},
		{name: "every repository", base: git, head: `{host: h.example, at: a, git: {read: ["**"], push: {"a/b": ["x/*"]}, any_repository: true}, credential: c}`, widened: true},
		{name: "agents", base: line, head: line, agentIs: agents, widened: true},
		{name: "agents for another host", base: line, head: line, agentsWas: agents, agentIs: "      agents: [{ssh: k, hosts: [h.example, i.example]}]\n", widened: true},
		{name: "agents by another key", base: line, head: line, agentsWas: agents, agentIs: "      agents: [{ssh: l, hosts: [h.example]}]\n", widened: true},
		{name: "fewer agents", base: line, head: line, agentsWas: agents},
	} {
		t.Run(c.name, func(t *testing.T) {
			side := func(line, agents string) Side {
				text := fmt.Sprintf("workshop:\n  name: w\n  container:\n    image: x\n    network:\n      mode: restricted\n      allow:\n      - %s\n%s  workers: [{name: a, tools: [], instructions: x}]\n", line, agents)
				w, list := workshop.Load(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(text)}}, "workshop.yaml", workshop.Options{Symbols: true})
				if list.HasErrors() {
					t.Fatal(list)
				}
				return Side{Workshop: w}
			}
			rows, err := Compare(t.Context(), side(c.base, c.agentsWas), side(c.head, c.agentIs))
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.ContainsFunc(rows, func(r Row) bool { return r.State == Widened || r.State == Unknown }); got != c.widened {
				t.Errorf("widened %v, want %v: %+v", got, c.widened, rows)
			}
			if len(rows) == 0 && c.name != "itself" {
				t.Error("no row")
			}
		})
	}
}

package app

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

// Hosts and networks of variables are a line each, as written ones are.
func TestResolveRules(t *testing.T) {
	lines := resolveRules([]firewall.Rule{
		{Template: "${H:-api.example.org}", Value: "other.example.net:22", Ports: firewall.DefaultAllowPorts()},
		{Template: "${C:-198.51.100.0/24}", Value: "0.0.0.0/0", Ports: []firewall.PortRange{{First: 22, Last: 22}}},
		{CIDR: netip.MustParsePrefix("2001:db8::/32"), Ports: firewall.DefaultAllowPorts()},
	}, "80,443")
	if len(lines) != 3 {
		t.Error(lines)
	}
	// The name of a preset alone is refused in a file.
	lines = resolveRules([]firewall.Rule{{Template: "${H:-npm}", Value: "npm", Ports: firewall.DefaultAllowPorts()}}, "80,443")
	if len(lines) != 1 || lines[0] != (any)(resolvedRule{Host: "npm"}) {
		t.Errorf("got %#v, want a mapping", lines)
	}
}

// What a base's or an import's worker is offered is shown, and not only the file that says
// more: a project may have narrowed it (B41).
func TestResolveNarrowedTools(t *testing.T) {
	has := func(from string, tools ...worker.Tool) []string {
		w := workshop.Worker{Name: "reviewer", File: "workers/reviewer.md", From: from, Definition: worker.Definition{Dialect: worker.Markdown, Tools: tools}}
		out := resolveWorker(&w, resolvedContainer{})
		if out.File != w.File {
			t.Errorf("got file %q, want %q", out.File, w.File)
		}
		if out.Tools == nil {
			return nil
		}
		return *out.Tools
	}
	read := worker.Tool{Name: "read_file", Written: "read_file"}
	if got := has("git.example.org/acme/base", read); !slices.Equal(got, []string{"read_file"}) {
		t.Errorf("got %v, want read_file", got)
	}
	if got := has("git.example.org/acme/base"); got == nil || len(got) > 0 {
		t.Errorf("got %v, want an empty list", got)
	}
	if got := has("", read); got != nil {
		t.Errorf("got %v of the project's own file, which says them", got)
	}
}

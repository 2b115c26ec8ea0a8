package workshop

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop/worker"
)

// mcpForm is one server of `mcp:` as it is written.
type mcpForm struct {
	Source  diag.Source
	Command *Value[string]           `key:"command" required:"true" validate:"text,oneline" literal:"It is part of a generated file." example:"write command: github-mcp-server" doc:"Program in the worker's image; it speaks over stdin and stdout."`
	Args    *[]Value[string]         `key:"args" validate:"oneline" literal:"They are part of a generated file." example:"write args: [stdio, \"--read-only\"]" doc:"Arguments of the program."`
	Env     map[string]Value[string] `key:"env" names:"envname" number:"true" literal:"It is part of a generated file; a value of the host comes in by secrets, or by env of the container." example:"write env: {LOG_LEVEL: warn}" doc:"Environment variables of this server alone."`
	Secrets map[string]Value[string] `key:"secrets" names:"envname" validate:"secretname" literal:"It names a secret." example:"write secrets: {GITHUB_TOKEN: github_token}" doc:"Environment variables that get the value of a secret of the worker."`
}

func (*mcpForm) title() string { return "a server of mcp" }

var mcpKeys = map[string]instead{
	"type":    {"Servers run in the worker and speak over their standard input and output.", "remove the key"},
	"url":     {"A server elsewhere is not part of a workshop.", "give its client the address; a worker reaches it by network.allow"},
	"headers": {"A server elsewhere is not part of a workshop.", "give its client the address; a worker reaches it by network.allow"},
	"cwd":     {"", "a server runs in the worker's workdir"},
	"timeout": {"", "write resources.timeout"},
}

// maxMCP bounds the servers of a workshop.
const maxMCP = 64

// mcpServers takes the servers over, in order of their names.
func (d *decoder) mcpServers(forms map[string]mcpForm) []MCPServer {
	var out []MCPServer
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		f := forms[name]
		if strings.Contains(name, "__") {
			d.fail(f.Source.Range, "bad-name", fmt.Sprintf("the name %q of an MCP server holds __", clip(name)), "__ separates server and tool in mcp__SERVER__TOOL; choose another name")
			continue
		}
		s := MCPServer{Name: name, Command: []string{f.Command.V}, Env: texts(f.Env), Secrets: texts(f.Secrets), At: f.Source}
		if f.Args != nil {
			for _, a := range *f.Args {
				s.Command = append(s.Command, a.V)
			}
		}
		for _, variable := range slices.Sorted(maps.Keys(f.Secrets)) {
			if v := f.Secrets[variable]; !slices.ContainsFunc(d.secrets, func(s Secret) bool { return s.Name == v.V }) {
				d.fail(v.Source.Range, "secret-unknown", fmt.Sprintf("the workshop's container has no secret %s", clip(v.V)), fmt.Sprintf("add it there: secrets: [{name: %s, env: VARIABLE}]", clip(v.V)))
			}
			if _, twice := f.Env[variable]; twice {
				d.fail(f.Secrets[variable].Source.Range, "bad-value", fmt.Sprintf("the variable %s is in both env and secrets", clip(variable)), "remove one of them")
			}
		}
		out = append(out, s)
	}
	if len(out) > maxMCP {
		d.fail(out[maxMCP].At.Range, "too-large", fmt.Sprintf("%d MCP servers, more than %d", len(out), maxMCP), "")
	}
	return out
}

func texts(values map[string]Value[string]) map[string]string {
	if len(values) == 0 {
		return nil
	}
	out := make(map[string]string, len(values))
	for name, v := range values {
		out[name] = v.V
	}
	return out
}

// mcpTools compares what the workers list with the servers that there are. A
// tool of a server that isn't there isn't offered (B41), with a warning:
// worker files are portable, and elsewhere it may be there.
func mcpTools(w *Workshop, p *problems) {
	used := map[string]bool{}
	for i := range w.Workers {
		wk := &w.Workers[i]
		wk.Definition.Tools = slices.DeleteFunc(wk.Definition.Tools, func(t worker.Tool) bool {
			server, _, ok := tool.SplitMCP(t.Name)
			if !ok {
				return false
			}
			at := slices.IndexFunc(w.MCP, func(s MCPServer) bool { return s.Name == server })
			if wk.Import() != "" {
				p.add(diag.Diagnostic{Severity: diag.Warning, Code: "worker-unknown-tool", Range: t.Source.Range,
					Summary: fmt.Sprintf("%s isn't offered: MCP servers are for the workshop's own workers, and %s is imported", t.Written, wk.Name),
					Hint:    "no grant has them; a worker of your own may use the server, and delegate the rest"})
				return true
			}
			if at < 0 {
				p.add(diag.Diagnostic{Severity: diag.Warning, Code: "worker-unknown-tool", Range: t.Source.Range,
					Summary: fmt.Sprintf("%s isn't offered: the workshop has no MCP server %s", t.Written, server),
					Hint:    fmt.Sprintf("add `mcp: {%s: {command: PROGRAM}}` to the workshop: it then runs in the worker", server)})
				return true
			}
			if !used[server+"\x00"+wk.Name] {
				used[server+"\x00"+wk.Name], used[server] = true, true
				mcpSecrets(wk, &w.MCP[at], t, p)
			}
			return false
		})
	}
	for _, s := range w.MCP {
		if !used[s.Name] {
			p.add(diag.Diagnostic{Severity: diag.Warning, Code: "mcp-unused", Range: s.At.Range,
				Summary: fmt.Sprintf("no worker lists a tool of the MCP server %s", s.Name),
				Hint:    fmt.Sprintf("add mcp__%s, or mcp__%s__TOOL, to the tools of a worker's file", s.Name, s.Name)})
		}
	}
}

// mcpSecrets: a server gets only secrets of the worker in which it runs.
func mcpSecrets(wk *Worker, s *MCPServer, t worker.Tool, p *problems) {
	for _, variable := range slices.Sorted(maps.Keys(s.Secrets)) {
		name := s.Secrets[variable]
		if slices.ContainsFunc(wk.Container.Secrets, func(o Secret) bool { return o.Name == name }) {
			continue
		}
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "mcp-secret", Range: t.Source.Range,
			Summary: fmt.Sprintf("the MCP server %s needs the secret %s, which the worker %s isn't given", s.Name, name, wk.Name),
			Hint:    fmt.Sprintf("give it in the workshop's list: `- {name: %s, container: {secrets: [%s]}}`", wk.Name, name),
			Related: []diag.Related{{Message: "the server is here", Range: s.At.Range}, {Message: "the worker is here", Range: wk.Source.Range}}})
	}
}

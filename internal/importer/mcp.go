package importer

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/draft"
)

// serverName is a name that a tool mcp__SERVER__TOOL can have.
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`) })

// secretVariable is a variable whose value is not for a file.
var secretVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(token|secret|passw|credential|api_?key|private_?key|_key$|^key$|_pat$)`)
})

// runners are programs that fetch a server, with the preset that they need.
var runners = map[string]string{"npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "pypi", "pipx": "pypi", "deno": "deno"}

// mcp imports the servers of an .mcp.json: programs run in the workers, the hosts of
// others become lines of allow.
func (i *importing) mcp(n *node) {
	servers := n.get("mcpServers")
	if servers == nil {
		servers = n.get("servers") // VS Code
	}
	if servers == nil || servers.kind != mapping {
		i.add(diag.Error, n.at, "import-invalid", "the file has no mcpServers", "write {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\"}}}")
		return
	}
	for _, p := range servers.pairs {
		switch s := p.value; {
		case s.kind != mapping:
			i.not(p.at, "the server "+p.key, "it is not a mapping", "")
		case s.get("url") != nil:
			i.remote(p.key, s)
		case s.get("command") != nil:
			i.server(p.key, p.at, s)
		default:
			i.not(p.at, "the server "+p.key, "it has neither command nor url", "")
		}
	}
	if len(i.MCP) > 0 {
		i.took("%s in the worker", count(len(i.MCP), "MCP server"))
	}
	hosts := 0
	for _, l := range i.Container.Allow {
		if !strings.HasPrefix(l.Text, "preset: ") {
			hosts++
		}
	}
	if hosts > 0 {
		i.took("%s to allow", count(hosts, "host"))
	}
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// server imports one that is a program.
func (i *importing) server(name string, at place, n *node) {
	what := "the server " + name
	command := n.get("command").str()
	switch base := path.Base(command); {
	case !serverName().MatchString(name) || strings.Contains(name, "__"):
		i.not(at, what, "its name can't be part of a tool's", "rename it: lower-case letters, digits, _ and -, without __")
		return
	case command == "" || hasServerVariable(command):
		i.not(n.get("command").at, what, "its command is not a plain text", "write it by hand below mcp")
		return
	case base == "docker" || base == "podman" || base == "nerdctl":
		i.refuse(n.get("command").at, what, "it starts a container, and a worker has no engine (B6)", "install the server's program in the worker's image and write its command")
		return
	}
	s := draft.Server{Name: name, Command: command}
	for _, a := range n.get("args").each() {
		if !a.isScalar() || hasServerVariable(a.text) {
			i.not(a.at, what, "an argument has a variable", "give the value as a variable of the server: secrets: {NAME: secret}")
			return
		}
		s.Args = append(s.Args, diag.Literal(a.text))
	}
	i.serverEnv(&s, n.get("env"))
	for _, p := range n.pairs {
		switch p.key {
		case "command", "args", "env", "type", "alwaysLoad", "disabled", "autoApprove":
		case "timeout":
			i.not(p.at, p.key, "", "the limit of one call is resources.timeout")
		default:
			i.not(p.at, p.key+" of "+what, "", "")
		}
	}
	i.MCP = append(i.MCP, s)
	i.Tools = append(i.Tools, "mcp__"+name)
	i.program(path.Base(command))
	if preset := runners[path.Base(command)]; preset != "" {
		i.allow(draft.Line{Text: "preset: " + preset, Why: "for " + path.Base(command)})
	}
}

// serverEnv imports variables: values of the host are secrets of the worker.
func (i *importing) serverEnv(s *draft.Server, env *node) {
	if env == nil {
		return
	}
	for _, p := range env.pairs {
		m := serverVariable().FindStringSubmatch(p.value.str())
		switch {
		case !isVariable(p.key) || !p.value.isScalar():
			i.not(p.at, fmt.Sprintf("the variable %q", p.key), "", "")
		case m != nil:
			i.secret(s, p.key, m[1])
			if m[2] != "" {
				i.not(p.value.at, "the default of "+p.key, "a secret has none", "set "+m[1]+" where you run workshop")
			}
		case hasServerVariable(p.value.text):
			i.not(p.value.at, "the variable "+p.key, "its value is composed of another", "set it in the environment of workshop, and write secrets: {"+p.key+": NAME}")
		case secretVariable().MatchString(p.key):
			i.secret(s, p.key, p.key)
			i.not(p.value.at, "the value of "+p.key, "it looks like a secret, and the file is for everybody", "set the variable "+p.key+" where you run workshop; the file has a secret for it")
		default:
			s.Env = append(s.Env, draft.Pair{Name: p.key, Value: diag.Literal(p.value.text)})
		}
	}
}

// secret gives a server a variable of the host.
func (i *importing) secret(s *draft.Server, variable, from string) {
	name := strings.ToLower(from)
	line := draft.Line{Text: "{name: " + draft.Scalar(name) + ", env: " + draft.Scalar(from) + "}"}
	if !slices.Contains(i.Container.Secrets, line) {
		i.Container.Secrets = append(i.Container.Secrets, line)
	}
	s.Secrets = append(s.Secrets, draft.Pair{Name: variable, Value: name})
}

// remote imports the host of a server elsewhere.
func (i *importing) remote(name string, n *node) {
	what, url := "the server "+name, n.get("url")
	scheme, rest, ok := strings.Cut(url.str(), "://")
	authority, _, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	host, port, hasPort := strings.Cut(authority, ":")
	if !hasPort {
		port = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}[scheme]
	}
	pattern, err := firewall.ParseName(host)
	_, notAddress := netip.ParseAddr(host)
	switch {
	case !ok || port == "" || strings.Trim(port, "0123456789") != "" || strings.ContainsAny(authority, "$@"):
		i.not(url.at, what, "its address is not a plain one", "write the host below network.allow")
	case host == "localhost" || strings.HasPrefix(host, "127."):
		i.not(url.at, what, "it is on this machine, which no worker reaches (B26)", "let your client connect to it")
	case notAddress == nil:
		i.not(url.at, what, "its host is an address", "write - {cidr: "+host+"/32, port: "+port+"} below network.allow, if workers are to reach it")
	case err != nil:
		i.not(url.at, what, "its host is not a valid name", "")
	default:
		i.allow(draft.Line{Text: draft.Scalar(pattern.String() + ":" + port), Why: "MCP server " + name})
	}
	for _, p := range n.pairs {
		switch p.key {
		case "headers", "headersHelper", "oauth", "env":
			i.not(p.at, p.key+" of "+what, "your client connects to it, and no worker gets its credentials", "keep it in the client's configuration")
		}
	}
}

func (i *importing) allow(l draft.Line) {
	if !slices.ContainsFunc(i.Container.Allow, func(x draft.Line) bool { return x.Text == l.Text }) {
		i.Container.Allow = append(i.Container.Allow, l)
	}
}

package credential

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/yamltext"
	"github.com/llmdo/workshop/internal/sshagent"
)

// Bounds of the file.
const (
	MaxSize        = 256 << 10 // bytes
	MaxCredentials = 256
	maxHosts       = 64
	maxArguments   = 64
	maxText        = 4 << 10
	maxDepth       = 8 // the file has three levels
)

// Lifetimes that a file can have.
const (
	minLifetime = time.Minute
	maxLifetime = 30 * 24 * time.Hour
)

// Parse reads the file's text; name is for the places of what is wrong with it, home what
// "~/" stands for. With errors there are no credentials.
func Parse(name string, data []byte, home string) ([]Credential, diag.List) {
	p := &parser{name: name, home: home}
	p.document(data)
	if len(p.problems) > 0 {
		return nil, p.problems.Sorted()
	}
	sortfunc.Stable(p.out, func(a, b Credential) int { return cmp.Compare(a.Name, b.Name) })
	return p.out, nil
}

type parser struct {
	name, home string
	out        []Credential
	problems   diag.List
}

// maxProblems are reported; a file of other content has thousands.
const maxProblems = 20

func (p *parser) failAt(line, column int, summary, hint string) {
	if len(p.problems) < maxProblems {
		at := diag.Pos{Line: line, Column: column}
		p.problems = append(p.problems, diag.Diagnostic{
			Severity: diag.Error, Summary: summary, Hint: hint, Range: diag.Range{Filename: p.name, Start: at, End: at},
		})
	}
}

func (p *parser) fail(n *yaml.Node, summary, hint string) { p.failAt(n.Line, n.Column, summary, hint) }

func (p *parser) document(data []byte) {
	place := func(at int) (line, column int) {
		return 1 + bytes.Count(data[:at], []byte("\n")), at - bytes.LastIndexByte(data[:at], '\n')
	}
	if len(data) > MaxSize {
		p.failAt(1, 1, fmt.Sprintf("the file has %d bytes, more than %d", len(data), MaxSize), "")
		return
	}
	if bad, found := yamltext.Check(data, 0); found {
		line, column := place(bad.At)
		p.failAt(line, column, bad.Summary, "")
		return
	}
	if at, found := yamltext.SecondDocument(data, 0); found {
		line, column := place(at)
		p.failAt(line, column, "the file has a second document", "remove the line ---")
		return
	}
	if onlyComments(data) {
		return
	}
	var doc yaml.Node
	if err := yamltext.Load(data, &doc, maxDepth); err != nil {
		text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
		p.failAt(1, 1, "the file is not valid YAML: "+clip.Bytes(text, 200), "")
		return
	}
	if len(doc.Content) != 1 {
		p.failAt(1, 1, "the file is not a mapping", "")
		return
	}
	p.mapping(doc.Content[0], "the file", func(key, value *yaml.Node) {
		if len(p.out) == MaxCredentials {
			p.fail(key, fmt.Sprintf("there are more than %d credentials", MaxCredentials), "")
			return
		}
		if !firewall.ValidEndpointName(key.Value) {
			p.fail(key, fmt.Sprintf("%q is not a name: "+firewall.EndpointNameForm, clip.Bytes(key.Value, 80)), "")
		}
		c := Credential{Name: key.Value, Line: key.Line}
		p.credential(key, value, &c)
		p.out = append(p.out, c)
	})
}

// onlyComments reports whether nothing is written, which has no credentials.
func onlyComments(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// mapping calls each for the pairs of a mapping with keys of text.
func (p *parser) mapping(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, what+" is not a mapping", "write `github: {command: [/usr/bin/gh, auth, token], hosts: [github.com], as: github}`")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || value.Kind == yaml.AliasNode:
			p.fail(key, "keys are plain text, without anchors, aliases and merges", "write it out")
		case seen[key.Value]:
			p.fail(key, fmt.Sprintf("the key %q is given twice", clip.Bytes(key.Value, 80)), "")
		default:
			seen[key.Value] = true
			each(key, value)
		}
	}
}

const (
	agentKey  = "ssh_agent"
	sources   = "write one of env, file, keyring, command and ssh_agent"
	agentHint = `write {ssh_agent: "SHA256:…", hosts: [git.example.org]}`
	proxyHint = `write {env: CORP_PROXY, hosts: ["proxy.example.org:3128"], as: proxy}`
)

func (p *parser) credential(key, n *yaml.Node, c *Credential) {
	before := len(p.problems)
	from := 0
	agent := slices.ContainsFunc(n.Content, func(x *yaml.Node) bool { return x.Kind == yaml.ScalarNode && x.Value == agentKey })
	proxy := isOfProxy(n)
	p.mapping(n, "the credential", func(key, n *yaml.Node) {
		switch key.Value {
		case "env", "file", "keyring", "command", agentKey:
			if from++; from == 2 {
				p.fail(key, "the credential has two sources", sources)
			}
		}
		switch key.Value {
		case "env":
			if c.Source.Env = p.text(n); strings.ContainsAny(c.Source.Env, "=$ ") {
				p.fail(n, "env is the name of a variable", "write env: GITHUB_TOKEN")
			}
		case "file":
			c.Source.File = p.path(n)
		case "keyring":
			c.Source.Keyring = p.text(n)
		case "command":
			p.command(n, c)
		case agentKey:
			if c.Agent = p.text(n); c.Agent != "" && !sshagent.ValidFingerprint(c.Agent) {
				p.fail(n, fmt.Sprintf("%q is not the fingerprint of a key", clip.Bytes(c.Agent, 80)), "write what `ssh-add -l` shows, SHA256:…")
			}
		case "known_hosts":
			if c.KnownHosts = p.path(n); !agent {
				p.fail(key, "known_hosts is for ssh_agent", agentHint)
			}
		case "hosts":
			switch {
			case agent:
				p.hosts(n, c, 22)
			case proxy:
				p.hosts(n, c, 0)
			default:
				p.hosts(n, c, 443)
			}
		case "as", "ttl", "ca", "use":
			switch {
			case agent:
				p.fail(key, key.Value+" is not for ssh_agent, which has no value", agentHint)
				return
			case proxy && (key.Value == "ca" || key.Value == "use"):
				p.fail(key, key.Value+" is not for `as: proxy`: a proxy speaks no TLS, and gets no pushes", "remove it")
				return
			}
		default:
			p.fail(key, fmt.Sprintf("unknown key %q of a credential", clip.Bytes(key.Value, 40)), "it has env, file, keyring, command or ssh_agent; hosts, as, ttl, ca, use and known_hosts")
		}
		switch key.Value {
		case "as":
			p.form(n, &c.As)
		case "ttl":
			d, err := time.ParseDuration(p.text(n))
			if err != nil || d < minLifetime || d > maxLifetime {
				p.fail(n, "ttl is how long a value is good for, from 1m to 720h", "write ttl: 50m")
			}
			c.Lifetime = d
		case "ca":
			c.Authorities = p.path(n)
		case "use":
			p.use(n, c)
		}
	})
	if len(p.problems) > before {
		return
	}
	if from == 0 {
		p.fail(key, fmt.Sprintf("the credential %s has no source", c.Name), sources)
	}
	if agent && c.KnownHosts == "" && p.home != "" {
		c.KnownHosts = filepath.Join(p.home, ".ssh", "known_hosts")
	}
	if len(c.Hosts) == 0 && !agent {
		p.fail(key, fmt.Sprintf("the credential %s has no hosts, so it could go nowhere", c.Name), "write hosts: [api.example.org], the hosts that it is for")
	}
}

func (p *parser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || len(n.Value) > maxText || n.Tag == "!!null" {
		p.fail(n, "this is not text", "")
		return ""
	}
	return n.Value
}

// list returns the texts of a list.
func (p *parser) list(n *yaml.Node, most int, example string) (out []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > most {
		p.fail(n, fmt.Sprintf("this is not a list of 1 to %d", most), "write "+example)
		return nil
	}
	for _, x := range n.Content {
		out = append(out, p.text(x))
	}
	return out
}

// path returns an absolute path.
func (p *parser) path(n *yaml.Node) string {
	name := p.text(n)
	if rest, ok := strings.CutPrefix(name, "~/"); ok && p.home != "" {
		name = filepath.Join(p.home, rest)
	}
	if name != "" && !filepath.IsAbs(name) {
		p.fail(n, fmt.Sprintf("%q is not an absolute path", clip.Bytes(name, 80)), "write it from / or ~/")
	}
	return filepath.Clean(name)
}

func (p *parser) command(n *yaml.Node, c *Credential) {
	c.Source.Command = p.list(n, maxArguments, "command: [/usr/bin/gh, auth, token]")
	if argv := c.Source.Command; len(argv) > 0 && argv[0] != "" && !filepath.IsAbs(argv[0]) {
		p.fail(n, fmt.Sprintf("the program %q is not an absolute path: which one it is must not depend on PATH", clip.Bytes(argv[0], 80)), "write command: [/usr/bin/gh, auth, token]")
	}
}

// use reads which uses ask.
func (p *parser) use(n *yaml.Node, c *Credential) {
	const hint = "write use: {push: ask}"
	p.mapping(n, "use", func(key, n *yaml.Node) {
		if key.Value != "push" {
			p.fail(key, fmt.Sprintf("unknown use %q", clip.Bytes(key.Value, 40)), hint)
			return
		}
		if c.AskPush = p.text(n) == "ask"; !c.AskPush && n.Value != "" {
			p.fail(n, fmt.Sprintf("push is not %q", clip.Bytes(n.Value, 40)), hint)
		}
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		p.fail(n, "use has no use", hint)
	}
}

func (p *parser) form(n *yaml.Node, f *Form) {
	const hint = "write as: bearer, as: github, as: proxy, as: {header: x-api-key} or as: {basic: USER}"
	if n.Kind == yaml.ScalarNode {
		switch n.Value {
		case "bearer":
		case "github":
			f.GitHub = true
		case "proxy":
			f.Proxy = true
		default:
			p.fail(n, fmt.Sprintf("%q is not a form", clip.Bytes(n.Value, 40)), hint)
		}
		return
	}
	given := 0
	p.mapping(n, "as", func(key, n *yaml.Node) {
		given++
		switch key.Value {
		case "header":
			if f.Header = p.text(n); f.Header != "" {
				if err := lease.CheckHeader(f.Header); err != nil {
					p.fail(n, err.Error(), hint)
				}
			}
		case "basic":
			if f.Basic = p.text(n); strings.ContainsFunc(f.Basic, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
				p.fail(n, "the user of basic authentication has no colon, no blank and no other character than ASCII's (RFC 7617)", hint)
			}
		default:
			p.fail(key, fmt.Sprintf("unknown form %q", clip.Bytes(key.Value, 40)), hint)
		}
	})
	if n.Kind == yaml.MappingNode && given != 1 {
		p.fail(n, "as has one form", hint)
	}
}

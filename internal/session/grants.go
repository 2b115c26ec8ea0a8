package session

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/workshop"
)

// granted is what a worker may do and reach, for models and programs. It is
// what the file says; the network may be changed while it runs.
type granted struct {
	Worker      string         `json:"worker"`
	Description string         `json:"description,omitempty"`
	Workdir     string         `json:"workdir"`
	Tools       []string       `json:"tools"`
	Delegates   []string       `json:"delegates"`
	Mounts      []grantedMount `json:"mounts"`
	// ReadOnly are directories in read-write mounts that are read-only nevertheless.
	ReadOnly []string `json:"read_only"`
	// Temporary are directories of the worker alone, empty at its start.
	Temporary []grantedSpace `json:"temporary"`
	Network   grantedNetwork `json:"network"`
	Secrets   []string       `json:"secrets"` // files in /run/secrets
	Limits    grantedLimits  `json:"limits"`
	// rest is what the files are that no mount has.
	rest string
}

type grantedMount struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // read-only, read-write, read-only copy
}

type grantedSpace struct {
	Path string `json:"path"`
	Size string `json:"size"`
}

type grantedNetwork struct {
	Mode  firewall.Mode `json:"mode"`
	Allow []string      `json:"allow"`
	Deny  []string      `json:"deny"`
}

type grantedLimits struct {
	Memory  string  `json:"memory"`
	CPU     float64 `json:"cpu"`
	PIDs    int64   `json:"pids"`
	Timeout string  `json:"timeout"` // of one call
}

func (s *workerSession) granted() granted {
	c := &s.worker.Container
	g := granted{Worker: s.worker.Name, Description: s.worker.Definition.Description, Workdir: c.Workdir.V,
		Tools: []string{}, Delegates: []string{}, Mounts: []grantedMount{}, ReadOnly: []string{}, Secrets: []string{},
		Limits: grantedLimits{Memory: c.Resources.Memory.V.String(), CPU: c.Resources.CPU.V, PIDs: c.Resources.PIDs.V, Timeout: durationtext.Of(c.Resources.Timeout.V)}}
	if g.rest = "and belongs to the image"; c.Image.V == "host" {
		g.rest = "with the programs of the host"
	}
	for _, o := range s.grant.Load().Tools {
		g.Tools = append(g.Tools, o.String())
	}
	for _, d := range s.worker.Definition.DelegatesTo {
		g.Delegates = append(g.Delegates, d.Name)
	}
	for i := range c.Mounts {
		mode := "read-only"
		switch m := &c.Mounts[i]; {
		case m.ReadWrite:
			mode = "read-write"
		case m.IsCopy():
			mode = "read-only copy"
		}
		g.Mounts = append(g.Mounts, grantedMount{c.Mounts[i].Target.V, mode})
	}
	if s.host.c.ReadOnly != nil {
		g.ReadOnly = append(g.ReadOnly, s.host.c.ReadOnly(s.worker.Name)...)
	}
	for _, space := range []struct {
		path string
		size workshop.Size
	}{{"/scratch", c.Scratch.V}, {"/tmp", c.Tmp.V}, {"/home/worker", c.Home.V}} {
		if space.size > 0 {
			g.Temporary = append(g.Temporary, grantedSpace{space.path, space.size.String()})
		}
	}
	for _, secret := range c.Secrets {
		g.Secrets = append(g.Secrets, secret.Name)
	}
	g.Network = grantedNetwork{Mode: c.Network.Mode.V, Allow: ruleLines(c.Network.Allow), Deny: ruleLines(c.Network.Deny)}
	return g
}

// ruleLines are rules as `network.allow` writes them, presets expanded.
func ruleLines(rules []firewall.Rule) []string {
	out := []string{}
	for _, r := range rules {
		line := r.Target()
		if r.Template != "" && r.Value != "" {
			line = r.Value
		}
		var ports []string
		for _, p := range r.Ports {
			ports = append(ports, p.String())
		}
		switch e, text := r.Endpoint, strings.Join(ports, ","); {
		case !e.IsZero():
			adds := ""
			if e.Credential != "" {
				adds = ", a credential is added there"
			}
			line += fmt.Sprintf(" (only by HTTP to the URL in $%s%s, with these requests: %s)", e.Variable(), adds, strings.Join(e.Texts(), "; "))
		case text != "80,443" && text != "1-65535" && text != "":
			line += ":" + text
		}
		out = append(out, line)
	}
	return out
}

// maxReadOnly paths in read-write mounts are named.
const maxReadOnly = 20

// text says it for a model.
func (g granted) text() string {
	l := &lines{}
	l.addf("Worker %s", g.Worker)
	if g.Description != "" {
		l.add(g.Description)
	}
	l.addf("Tools: %s", list(g.Tools))
	if len(g.Delegates) > 0 {
		l.addf("Delegates to: %s", list(g.Delegates))
	}
	l.addf("Working directory: %s", g.Workdir)
	l.add("Files:")
	for _, m := range g.Mounts {
		l.addf("- %s, %s", m.Path, m.Mode)
	}
	if n := len(g.ReadOnly); n > maxReadOnly {
		l.addf("- read-only in those: %s and %d more such directories", list(g.ReadOnly[:maxReadOnly]), n-maxReadOnly)
	} else if n > 0 {
		l.addf("- read-only in those: %s", list(g.ReadOnly))
	}
	if slices.ContainsFunc(g.ReadOnly, func(p string) bool { return path.Base(p) == ".git" }) {
		l.add("- commits are not possible, as .git is read-only")
	}
	for _, t := range g.Temporary {
		l.addf("- %s, writable, %s, gone when the worker is restarted", t.Path, t.Size)
	}
	l.add("- everything else is read-only, " + g.rest)
	l.add("Network: " + g.Network.text())
	if len(g.Secrets) > 0 {
		l.addf("Secrets, as files in /run/secrets: %s", list(g.Secrets))
	}
	l.addf("Limits: %s memory, %s cpu, %d processes; a call ends after %s", g.Limits.Memory, strconv.FormatFloat(g.Limits.CPU, 'g', -1, 64), g.Limits.PIDs, g.Limits.Timeout)
	return l.String()
}

func (n grantedNetwork) text() string {
	text := ""
	switch n.Mode {
	case firewall.None:
		return "none"
	case firewall.Open:
		text = "every public name, TCP only"
	default:
		text = "TCP only to " + list(n.Allow) + " (a name without a port: 80 and 443)"
		if len(n.Allow) == 0 {
			text = "restricted to nothing"
		}
	}
	if len(n.Deny) > 0 {
		text += fmt.Sprintf("; never to %s", list(n.Deny))
	}
	return text + ". The guard refuses all else to the worker's network, its room"
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

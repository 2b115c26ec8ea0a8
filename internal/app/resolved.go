package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/worker"
)

// Resolved is a workshop file with everything written out, in the order in which
// a person reads it; a workshop file itself in YAML and in JSON, unless there are workers
// of bases and imports.
type Resolved struct {
	Workshop resolvedWorkshop `yaml:"workshop" json:"workshop"`
}

// The parts of [Resolved]:
type (
	resolvedWorkshop struct {
		Name        string             `yaml:"name" json:"name"`
		Version     string             `yaml:"version,omitempty" json:"version,omitempty"`
		Description string             `yaml:"description,omitempty" json:"description,omitempty"`
		Isolation   string             `yaml:"isolation" json:"isolation"`
		Container   resolvedContainer  `yaml:"container" json:"container"`
		Workers     []resolvedWorker   `yaml:"workers" json:"workers"`
		Approvals   *resolvedApprovals `yaml:"approvals,omitempty" json:"approvals,omitempty"`
	}
	resolvedWorker struct {
		Name string `yaml:"name" json:"name"`
		File string `yaml:"file,omitempty" json:"file,omitempty"`
		// Of an inline worker; its tools also of one that a base or an import has:
		Description  string            `yaml:"description,omitempty" json:"description,omitempty"`
		Tools        *[]string         `yaml:"tools,omitempty" json:"tools,omitempty"` // an empty list is written
		DelegatesTo  []string          `yaml:"delegates-to,omitempty" json:"delegates-to,omitempty"`
		Model        string            `yaml:"model,omitempty" json:"model,omitempty"`
		ResultType   string            `yaml:"result_type,omitempty" json:"result_type,omitempty"`
		Instructions string            `yaml:"instructions,omitempty" json:"instructions,omitempty"`
		Container    resolvedContainer `yaml:"container" json:"container"`
	}
	resolvedContainer struct {
		Image     string            `yaml:"image,omitempty" json:"image,omitempty"`
		Build     *resolvedBuild    `yaml:"build,omitempty" json:"build,omitempty"`
		Pull      string            `yaml:"pull,omitempty" json:"pull,omitempty"`
		User      string            `yaml:"user,omitempty" json:"user,omitempty"`
		Workdir   string            `yaml:"workdir,omitempty" json:"workdir,omitempty"`
		Network   resolvedNetwork   `yaml:"network" json:"network"`
		Mounts    []resolvedMount   `yaml:"mounts" json:"mounts"`
		Scratch   string            `yaml:"scratch,omitempty" json:"scratch,omitempty"`
		Tmp       string            `yaml:"tmp,omitempty" json:"tmp,omitempty"`
		Shm       string            `yaml:"shm,omitempty" json:"shm,omitempty"`
		Home      string            `yaml:"home,omitempty" json:"home,omitempty"`
		Resources resolvedResources `yaml:"resources" json:"resources"`
		Env       map[string]string `yaml:"env,omitempty" json:"env,omitempty"`
		GitAuthor string            `yaml:"git_author,omitempty" json:"git_author,omitempty"`
		Secrets   []any             `yaml:"secrets,omitempty" json:"secrets,omitempty"`
		Caches    []any             `yaml:"caches,omitempty" json:"caches,omitempty"`
		Ports     []resolvedPort    `yaml:"ports,omitempty" json:"ports,omitempty"`
		Runtime   string            `yaml:"runtime,omitempty" json:"runtime,omitempty"`
		Kernel    string            `yaml:"kernel,omitempty" json:"kernel,omitempty"`
	}
	resolvedBuild struct {
		Context    string            `yaml:"context" json:"context"`
		Dockerfile string            `yaml:"dockerfile,omitempty" json:"dockerfile,omitempty"`
		Args       map[string]string `yaml:"args,omitempty" json:"args,omitempty"`
		Target     string            `yaml:"target,omitempty" json:"target,omitempty"`
	}
	resolvedNetwork struct {
		Mode            string   `yaml:"mode" json:"mode"`
		Allow           *[]any   `yaml:"allow,omitempty" json:"allow,omitempty"` // an empty list is written
		Deny            []any    `yaml:"deny,omitempty" json:"deny,omitempty"`
		DNS             []string `yaml:"dns,omitempty" json:"dns,omitempty"`
		Proxy           string   `yaml:"proxy,omitempty" json:"proxy,omitempty"`
		ProxyCredential string   `yaml:"proxy_credential,omitempty" json:"proxy_credential,omitempty"`
		Room            string   `yaml:"room,omitempty" json:"room,omitempty"`
	}
	resolvedRule struct {
		Host         string `yaml:"host,omitempty" json:"host,omitempty"`
		CIDR         string `yaml:"cidr,omitempty" json:"cidr,omitempty"`
		Port         any    `yaml:"port,omitempty" json:"port,omitempty"`
		At           string `yaml:"at,omitempty" json:"at,omitempty"`
		Requests     any    `yaml:"requests,omitempty" json:"requests,omitempty"` // []string
		Git          any    `yaml:"git,omitempty" json:"git,omitempty"`           // resolvedGit
		EncodedSlash bool   `yaml:"encoded_slash,omitempty" json:"encoded_slash,omitempty"`
		Credential   string `yaml:"credential,omitempty" json:"credential,omitempty"`
		Private      bool   `yaml:"private,omitempty" json:"private,omitempty"`
		AnyTenant    bool   `yaml:"any_tenant,omitempty" json:"any_tenant,omitempty"`
		ECH          string `yaml:"ech,omitempty" json:"ech,omitempty"`
		Upload       string `yaml:"upload,omitempty" json:"upload,omitempty"`
	}
	resolvedMount struct {
		Name           string   `yaml:"name,omitempty" json:"name,omitempty"`
		Source         string   `yaml:"source" json:"source"`
		Target         string   `yaml:"target" json:"target"`
		Mode           string   `yaml:"mode" json:"mode"`
		Exclude        []string `yaml:"exclude,omitempty" json:"exclude,omitempty"`
		Copy           bool     `yaml:"copy,omitempty" json:"copy,omitempty"`
		OutsideProject bool     `yaml:"outside_project,omitempty" json:"outside_project,omitempty"`
		Git            string   `yaml:"git,omitempty" json:"git,omitempty"`
		Sockets        string   `yaml:"sockets,omitempty" json:"sockets,omitempty"`
	}
	resolvedResources struct {
		Memory  string  `yaml:"memory" json:"memory"`
		CPU     float64 `yaml:"cpu" json:"cpu"`
		PIDs    int64   `yaml:"pids" json:"pids"`
		Timeout string  `yaml:"timeout" json:"timeout"`
	}
	resolvedSecret struct {
		Name string `yaml:"name" json:"name"`
		Env  string `yaml:"env,omitempty" json:"env,omitempty"`
		File string `yaml:"file,omitempty" json:"file,omitempty"`
	}
	resolvedCache struct {
		Name       string `yaml:"name" json:"name"`
		Target     string `yaml:"target" json:"target"`
		PruneAbove string `yaml:"prune_above" json:"prune_above"`
	}
	resolvedPort struct {
		Published        any    `yaml:"published" json:"published"`
		Target           uint16 `yaml:"target" json:"target"`
		Host             string `yaml:"host,omitempty" json:"host,omitempty"`
		ExposeBeyondHost bool   `yaml:"expose_beyond_host,omitempty" json:"expose_beyond_host,omitempty"`
	}
	resolvedApprovals struct {
		// Default is empty unless the file has it: written, it counts for reading, too.
		Default string                 `yaml:"default,omitempty" json:"default,omitempty"`
		Rules   []resolvedApprovalRule `yaml:"rules,omitempty" json:"rules,omitempty"`
	}
	resolvedApprovalRule struct {
		Tool     string `yaml:"tool" json:"tool"`
		Match    string `yaml:"match,omitempty" json:"match,omitempty"`
		Approval string `yaml:"approval" json:"approval"`
	}
)

// Config loads the workshop and writes it out. Which of its sources are symbolic
// links, and where they lead on this machine, is an event.
func (env *Env) Config(ctx context.Context) (Resolved, error) {
	env.Warnings = WarnAll
	s, err := env.Load(ctx)
	if err != nil {
		return Resolved{}, err
	}
	env.sayLinks(s)
	f := resolve(s.Workshop)
	if name, err := env.projectName(s.Workshop.Name.V, s.Root()); err == nil {
		f.number(env.Ports(ProjectRef{Name: name, Dir: RealPath(s.Root())}))
	}
	return f, nil
}

// number puts in the ports that this machine chose for those that the file leaves open.
func (f *Resolved) number(ports Ports) {
	for _, w := range f.Workshop.Workers {
		for i := range w.Container.Ports {
			p := &w.Container.Ports[i]
			if n := ports[compose.PortKey{Worker: w.Name, Target: p.Target}]; n != 0 && p.Published == autoPort {
				p.Published = n
			}
		}
	}
}

// autoPort is a port that the file leaves open, as the file has it.
const autoPort = "auto"

func publishedValue(port uint16) any {
	if port == 0 {
		return autoPort
	}
	return port
}

// sayLinks leaves out a source that isn't there: it leads nowhere.
func (env *Env) sayLinks(s *Source) {
	dir, err := filepath.EvalSymlinks(s.Root())
	if err != nil {
		return
	}
	said := map[string]bool{}
	for i := range s.Workshop.Workers {
		for _, m := range s.Workshop.Workers[i].Container.Mounts {
			path := m.Source.V
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && !said[m.Source.V] {
				said[m.Source.V] = true
				env.sayLeads(dir, m.Source.V, real)
			}
		}
	}
}

func resolve(w *workshop.Workshop) Resolved {
	f := Resolved{resolvedWorkshop{
		Name: w.Name.V, Version: w.Version.V, Description: diag.Literal(w.Description.V),
		Isolation: string(w.Isolation.V),
		Container: resolveContainer(&w.Container),
		Workers:   []resolvedWorker{},
	}}
	if w.Approvals.Default.Source.Range.Filename != "" || len(w.Approvals.Rules) > 0 {
		f.Workshop.Approvals = &resolvedApprovals{}
	}
	if w.Approvals.Default.Source.Range.Filename != "" {
		f.Workshop.Approvals.Default = string(w.Approvals.Default.V)
	}
	// Ports belong to one worker and are listed there.
	f.Workshop.Container.Ports = nil
	for i := range w.Workers {
		k := resolveContainer(&w.Workers[i].Container)
		// What only the workshop may say.
		k.Network.DNS, k.Network.Proxy, k.Network.ProxyCredential, k.Runtime = nil, "", "", ""
		k.Secrets = nil
		for _, secret := range w.Workers[i].Container.Secrets {
			k.Secrets = append(k.Secrets, secret.Name)
		}
		k.Caches = nil
		for _, cache := range w.Workers[i].Container.Caches {
			k.Caches = append(k.Caches, cache.Name)
		}
		f.Workshop.Workers = append(f.Workshop.Workers, resolveWorker(&w.Workers[i], k))
	}
	for _, r := range w.Approvals.Rules {
		f.Workshop.Approvals.Rules = append(f.Workshop.Approvals.Rules, resolvedApprovalRule{r.Tool, diag.Literal(r.Match), string(r.Approval)})
	}
	return f
}

// resolveWorker has the file of a worker, or what it does where workshop.yaml says that. Of
// a base's and an import's it has the tools, too.
func resolveWorker(w *workshop.Worker, k resolvedContainer) resolvedWorker {
	out := resolvedWorker{Name: w.Name, Container: k}
	d := &w.Definition
	if d.Dialect != worker.InlineWorker {
		if out.File = w.File; w.From != "" { // a project may leave it fewer than its file has
			out.Tools = toolsOf(d)
		}
		return out
	}
	out.Tools = toolsOf(d)
	out.Description, out.Instructions = diag.Literal(d.Description), diag.Literal(d.Instructions)
	out.Model, out.ResultType = diag.Literal(d.Model), diag.Literal(d.ResultFile.Name)
	for _, to := range d.DelegatesTo {
		out.DelegatesTo = append(out.DelegatesTo, to.Name)
	}
	return out
}

// toolsOf are the tools that a worker is offered, as they are written.
func toolsOf(d *worker.Definition) *[]string {
	tools := []string{}
	for _, t := range d.Tools {
		if name := diag.Literal(t.Written); !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	return &tools
}

func resolveContainer(c *workshop.Container) resolvedContainer {
	k := resolvedContainer{
		Image: diag.Literal(c.Image.V), Pull: string(c.Pull.V), User: c.User.V, Workdir: diag.Literal(c.Workdir.V),
		Network: resolveNetwork(&c.Network),
		Mounts:  []resolvedMount{},
		Scratch: c.Scratch.V.String(), Tmp: c.Tmp.V.String(), Shm: c.Shm.V.String(), Home: c.Home.V.String(),
		Resources: resolvedResources{
			Memory: c.Resources.Memory.V.String(), CPU: c.Resources.CPU.V, PIDs: c.Resources.PIDs.V,
			Timeout: durationtext.Of(c.Resources.Timeout.V),
		},
		Env: resolveMap(c.Env), GitAuthor: c.GitAuthor.V, Runtime: c.Runtime.V, Kernel: string(c.Kernel.V),
	}
	if b := c.Build; b != nil {
		k.Build = &resolvedBuild{diag.Literal(b.Context.V), diag.Literal(b.Dockerfile.V), resolveMap(b.Args), b.Target.V}
	}
	for _, m := range c.Mounts {
		k.Mounts = append(k.Mounts, resolveMount(m))
	}
	for _, s := range c.Secrets {
		k.Secrets = append(k.Secrets, resolvedSecret{s.Name, s.Env, diag.Literal(s.File.V)})
	}
	for _, x := range c.Caches {
		k.Caches = append(k.Caches, resolvedCache{x.Name, diag.Literal(x.Target.V), x.PruneAbove.V.String()})
	}
	for _, p := range c.Ports {
		k.Ports = append(k.Ports, resolvedPort{publishedValue(p.Published.V), p.Target.V, p.Host.V, p.ExposeBeyondHost})
	}
	return k
}

func resolveNetwork(n *workshop.Network) resolvedNetwork {
	out := resolvedNetwork{Mode: n.Mode.V.String(), Deny: resolveRules(n.Deny, "1-65535"), Proxy: diag.Literal(n.Proxy.V), ProxyCredential: n.ProxyCredential.V}
	if n.Mode.V == firewall.Restricted {
		allow := resolveRules(n.Allow, "80,443")
		out.Allow = &allow
	}
	for _, d := range n.DNS {
		out.DNS = append(out.DNS, diag.Literal(d.V))
	}
	if n.OwnRoom.V {
		out.Room = "own"
	}
	return out
}

// resolveRules writes one entry per port or range; usual is the port list
// that goes without saying.
func resolveRules(rules []firewall.Rule, usual string) []any {
	out, seen := []any{}, map[string]bool{}
	add := func(entry any) {
		if key := fmt.Sprintf("%#v", entry); !seen[key] { // a worker's deny repeats the workshop's
			seen[key], out = true, append(out, entry)
		}
	}
	for _, r := range rules {
		rule := resolvedRule{Private: r.Private, AnyTenant: r.AnyTenant, Upload: r.Upload.String()}
		if r.ECH {
			rule.ECH = "allow"
		}
		if e := r.Endpoint; !e.IsZero() {
			rule.At, rule.EncodedSlash, rule.Credential = e.At, e.EncodedSlash, e.Credential
			if g := e.Git; g.IsZero() {
				rule.Requests = e.Requests.Texts()
			} else {
				rule.Git = resolveGit(g)
			}
		}
		if to := r.Meant(); strings.Contains(to, "/") {
			rule.CIDR = to
		} else {
			rule.Host = to
		}
		if firewall.FormatPorts(r.Ports) == usual {
			if rule == (resolvedRule{Host: rule.Host}) && !presets.Has(rule.Host) {
				add(rule.Host)
			} else {
				add(rule)
			}
			continue
		}
		if len(r.Ports) > 1 && !r.Upload.IsZero() { // one line, for it is one budget
			var ports []any
			for _, p := range firewall.NormalizePorts(r.Ports) {
				ports = append(ports, portValue(p))
			}
			rule.Port = ports
			add(rule)
			continue
		}
		for _, p := range r.Ports {
			rule.Port = portValue(p)
			add(rule)
		}
	}
	return out
}

// portValue is a number, or a text for a range.
func portValue(p firewall.PortRange) any {
	if p.First == p.Last {
		return p.First
	}
	return strconv.Itoa(int(p.First)) + "-" + strconv.Itoa(int(p.Last))
}

func resolveMount(m workshop.Mount) resolvedMount {
	out := resolvedMount{
		Name: m.Name, Source: diag.Literal(m.Source.V), Target: diag.Literal(m.Target.V), Mode: "ro",
		Exclude: m.Exclude, Copy: m.Copy, OutsideProject: m.OutsideProject,
	}
	if m.ReadWrite {
		out.Mode = "rw"
	}
	if m.GitWritable {
		out.Git = "rw"
	}
	if m.AllowSockets {
		out.Sockets = "allow"
	}
	return out
}

func resolveMap(m map[string]workshop.Value[string]) map[string]string {
	out := make(map[string]string, len(m))
	for name, v := range m {
		out[name] = diag.Literal(v.V)
	}
	return out
}

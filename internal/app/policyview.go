package app

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop"
)

// PolicyView is the network policy of a workshop: what the file says, and what the
// guard does, where one runs.
type PolicyView struct {
	File string // the workshop file, as the user would write it
	// Effective are the rooms with what is live in the guard, in order of their names.
	Effective []firewall.RoomPolicy
	// None are the workers without a network.
	None []string
	// State is nil where no guard answers; Missing then says why.
	State   *control.State
	Missing error

	c      *Project
	policy *firewall.Policy      // nil where no worker has a room
	file   []firewall.RoomPolicy // as the file has them, with the values of variables
	engine *Running              // nil where none answers
}

// ViewPolicy reads the file, which must be valid, and asks the guard, which need not
// be there. worker, if it is not empty, must be one of the workshop.
func (env *Env) ViewPolicy(ctx context.Context, worker string) (*PolicyView, error) {
	v, err := env.viewPolicy(ctx, worker)
	if err == nil {
		v.close()
	}
	return v, err
}

// viewPolicy is [Env.ViewPolicy] with an engine to go on with. The caller closes it.
func (env *Env) viewPolicy(ctx context.Context, worker string) (*PolicyView, error) {
	c, err := env.Compile(ctx)
	if err != nil {
		return nil, err
	}
	if text := env.redefinedText(c.Name, c.Source); text != "" {
		env.warn("%s", text)
	}
	v := &PolicyView{c: c, File: env.Shown(c.ProjectRef.File)}
	for i := range c.Workshop.Workers {
		if name := c.Workshop.Workers[i].Name; c.Compiled.RoomOf[name] == "" {
			v.None = append(v.None, name)
		}
	}
	if v.policy = env.asGuardHas(c.Compiled.Policy); v.policy != nil {
		v.file = v.policy.Filled().Rooms
	}
	v.ask(ctx, env)
	v.Effective = v.file
	if v.State != nil {
		v.Effective = (&firewall.Policy{Rooms: v.file}).Overlay(v.live(), func(room string) bool {
			return v.State.Learning[room].After(time.Now())
		}).Rooms
	}
	if worker != "" {
		if err := c.CheckWorkers([]string{worker}); err != nil {
			v.close()
			return nil, err
		}
	}
	return v, nil
}

func (v *PolicyView) close() {
	if v.engine != nil {
		v.engine.Close()
	}
}

// ask asks the guard what it does.
func (v *PolicyView) ask(ctx context.Context, env *Env) {
	var e *Running
	if e, v.Missing = env.Connect(ctx, v.c.ProjectRef, nil); v.Missing != nil {
		return
	}
	v.engine = e
	v.Missing = env.withGuard(ctx, e, func(c *control.Client) error {
		s, err := guardState(c)
		if err == nil {
			v.State = &s
		}
		return err
	})
}

// live are the live changes.
func (v *PolicyView) live() []firewall.Live {
	if v.State == nil {
		return nil
	}
	out := slices.Clone(v.State.Live)
	for i := range out {
		out[i].Rule.Line = cmp.Or(out[i].Rule.Line, firewall.LiveLine)
	}
	return out
}

// asGuardHas returns a policy of the file as `up` gives it to the guard: with this
// machine's roots. p may be nil.
func (env *Env) asGuardHas(p *firewall.Policy) *firewall.Policy {
	if p == nil || !p.HasEndpoints() {
		return p
	}
	roots, _ := facts.Authorities(env.Lookup) // `up` says what is wrong
	return p.WithRoots(roots)
}

// isPolicyOf reports whether a policy, nil for none, is the one that a guard has, without
// live changes: its lines, the roots, and the values of their variables.
func isPolicyOf(p *firewall.Policy, s control.State) bool {
	return p != nil && s.Digest == firewall.Digest(p) && s.Values == firewall.ValuesDigest(p, p.Filled())
}

// Changed reports whether the guard has another policy than the file.
func (v *PolicyView) Changed() bool {
	return v.State != nil && !isPolicyOf(v.policy, *v.State)
}

// StaleModes are the workers that run with another mode than the file has.
func (v *PolicyView) StaleModes() (workers []string) {
	if v.State == nil {
		return nil
	}
	runs := modesOf(*v.State)
	for _, w := range v.c.Workshop.Workers {
		if runs[w.Name] != w.Container.Network.Mode.V {
			workers = append(workers, w.Name)
		}
	}
	return workers
}

// PolicyDocument is the network policy as data.
type PolicyDocument struct {
	Workshop string       `json:"workshop"`
	Project  string       `json:"project"`
	File     string       `json:"file"`
	Digest   string       `json:"digest,omitempty"` // of the file's policy
	Rooms    []PolicyRoom `json:"rooms"`
	None     []string     `json:"no_network,omitempty"` // workers
	// Upstreams that the file names, or the user by a variable of it.
	Upstreams []PolicyUpstream `json:"upstreams,omitempty"`
	Running   *RunningPolicy   `json:"running,omitempty"`
}

// PolicyUpstream is a resolver or the proxy.
type PolicyUpstream struct {
	control.Upstream
	NamedBy string `json:"named_by"` // file, user
}

// PolicyRoom is a room with its rules.
type PolicyRoom struct {
	Room    string        `json:"room"`
	Workers []string      `json:"workers"`
	Mode    firewall.Mode `json:"mode"`
	Allow   []PolicyRule  `json:"allow"`
	Deny    []PolicyRule  `json:"deny"`
}

// PolicyRule is one line of the file. Target is what it is about, with the values
// of variables.
type PolicyRule struct {
	Target string `json:"target"`
	Ports  string `json:"ports"`
	// At is the name of the line's endpoint, URL where it is in the room, and Requests are
	// what it lets through, or Git is; Credential is the name of what the guard adds to them.
	At           string      `json:"at,omitempty"`
	URL          string      `json:"url,omitempty"`
	Requests     []string    `json:"requests,omitempty"`
	Git          request.Git `json:"git,omitzero"`
	EncodedSlash bool        `json:"encoded_slash,omitempty"`
	Credential   string      `json:"credential,omitempty"`
	Private      bool        `json:"private,omitempty"`
	ECH          bool        `json:"ech,omitempty"`
	Upload       string      `json:"upload,omitempty"`
	AnyTenant    bool        `json:"any_tenant,omitempty"`
	Preset       string      `json:"preset,omitempty"`
	Line         string      `json:"line"`
	// DeniedLive is the change of the running guard that denies all of an allow line.
	DeniedLive string `json:"denied_live,omitempty"`
}

// RunningPolicy is what the guard does now.
type RunningPolicy struct {
	// Current reports whether the guard has the policy of the file.
	Current bool `json:"current"`
	control.State
}

// Mode is that of a worker's room.
func (r *RunningPolicy) Mode(worker string) firewall.Mode { return modesOf(r.State)[worker] }

// Document gathers what is shown of a worker's room, or of all.
func (v *PolicyView) Document(worker string) PolicyDocument {
	d := PolicyDocument{Workshop: v.c.Workshop.Name.V, Project: v.c.Name, File: v.c.Base(), Rooms: []PolicyRoom{}}
	if p := v.policy; p != nil {
		d.Digest = firewall.Digest(p)
		d.Upstreams = policyUpstreams(&v.c.Workshop.Container.Network)
	}
	shown := map[string]bool{}
	for _, r := range v.file {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		shown[r.Room] = true
		room := PolicyRoom{Room: r.Room, Workers: r.Workers, Mode: r.Mode, Allow: policyRules(r.Allow), Deny: policyRules(r.Deny)}
		denies := v.liveDenies(r.Room)
		for i := range room.Allow {
			room.Allow[i].DeniedLive, _ = deniedBy(r.Allow[i], denies)
		}
		d.Rooms = append(d.Rooms, room)
	}
	for _, name := range v.None {
		if worker == "" || worker == name {
			d.None = append(d.None, name)
		}
	}
	if v.State == nil {
		return d
	}
	d.Running = &RunningPolicy{Current: !v.Changed(), State: *v.State}
	for _, r := range v.State.Rooms {
		shown[r.Room] = shown[r.Room] || slices.Contains(r.Workers, worker)
	}
	if worker != "" {
		s := &d.Running.State
		s.Live = slices.DeleteFunc(slices.Clone(s.Live), func(l firewall.Live) bool { return l.Room != "" && !shown[l.Room] })
		s.Rooms = slices.DeleteFunc(slices.Clone(s.Rooms), func(r control.RoomState) bool { return !shown[r.Room] })
		learning := map[string]time.Time{}
		for room, until := range s.Learning {
			if shown[room] {
				learning[room] = until
			}
		}
		s.Learning = learning
	}
	return d
}

// liveDenies are the live changes that deny something to a room, as lines.
func (v *PolicyView) liveDenies(room string) (out []firewall.Rule) {
	for _, l := range v.live() {
		if l.Deny && (l.Room == "" || l.Room == room) {
			l.Rule.Line = liveText(l)
			out = append(out, l.Rule)
		}
	}
	return out
}

func policyUpstreams(n *workshop.Network) (out []PolicyUpstream) {
	add := func(u control.Upstream, by workshop.Origin) {
		x := PolicyUpstream{u, "file"}
		if by == workshop.OfUser {
			x.NamedBy = "user"
		}
		out = append(out, x)
	}
	for _, r := range n.DNS {
		if a, err := firewall.ParseResolver(r.V); err == nil {
			add(control.Upstream{Kind: "resolver", Address: a.String()}, r.NamedBy)
		}
	}
	if x, err := firewall.ParseProxy(n.Proxy.V); err == nil {
		add(control.Upstream{Kind: "proxy", Address: x.String(), Credential: n.ProxyCredential.V}, n.Proxy.NamedBy)
	}
	return out
}

func policyRules(rules []firewall.Rule) []PolicyRule {
	out := []PolicyRule{}
	for _, r := range rules {
		out = append(out, NewPolicyRule(r))
	}
	return out
}

// NewPolicyRule is a rule as data.
func NewPolicyRule(r firewall.Rule) PolicyRule {
	var requests []string
	url := ""
	if !r.Endpoint.IsZero() {
		url = r.Endpoint.URL()
		if r.Endpoint.Git.IsZero() {
			requests = r.Endpoint.Requests.Texts()
		}
	}
	return PolicyRule{
		At: r.Endpoint.At, URL: url, Requests: requests, Git: r.Endpoint.Git, EncodedSlash: r.Endpoint.EncodedSlash, Credential: r.Endpoint.Credential,
		Target: r.Target(), Ports: rulePorts(r.Ports), Private: r.Private, ECH: r.ECH, Upload: r.Upload.String(),
		AnyTenant: r.AnyTenant, Preset: r.Preset, Line: r.Line,
	}
}

// LetsThrough is what the line's endpoint lets through, in words; empty if it has none.
func (r PolicyRule) LetsThrough() string {
	return strings.Join(slices.Concat(r.Requests, firewall.Endpoint{Git: r.Git}.Texts()), "; ")
}

// rulePorts is "80,443", "all".
func rulePorts(ports []firewall.PortRange) string {
	if slices.Equal(ports, []firewall.PortRange{firewall.AllPorts}) {
		return "all"
	}
	return firewall.FormatPorts(ports)
}

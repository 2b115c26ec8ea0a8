package workshop

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// Excess is something that one container has and another one doesn't grant.
type Excess struct {
	Key           string // of the container: "network.allow"
	Have, Granted string // both, in words; what the parts don't say
	// HaveOf and GrantedOf are the parts of the containers that it is about.
	HaveOf, GrantedOf Part
	At, Grant         diag.Range // their places; zero where there is none
	// Unknown: whether it exceeds can't be decided, as with a variable.
	Unknown bool
}

// Comparer compares effective containers by the rules of narrowing, but by what they
// grant and not by how it is written: lines that the container denies itself don't
// count, nor the names of secrets. It bounds the work of all comparisons together.
type Comparer struct {
	work     effort
	networks map[networkPair][]excess
	mounts   map[[2]*Mount][]excess
}

// networkPair identifies two networks: most workers have the workshop's.
type networkPair struct {
	inner, outer             diag.Range
	modes                    [2]firewall.Mode
	allow, deny, allow2, den *firewall.Rule
	agents                   [2]*Agent
}

// NewComparer makes a Comparer. symbolic: of workshops loaded with Options.Symbols.
func NewComparer(ctx context.Context, symbolic bool) *Comparer {
	return &Comparer{
		work:     effort{ctx: ctx, left: maxEffort, symbolic: symbolic, exact: true},
		networks: map[networkPair][]excess{}, mounts: map[[2]*Mount][]excess{},
	}
}

// Err returns an error when the comparisons were too much work, or when the context
// ended: their results are not complete then.
func (c *Comparer) Err() error {
	switch {
	case c.work.ctx != nil && c.work.ctx.Err() != nil:
		return context.Cause(c.work.ctx)
	case c.work.left < 0:
		return fmt.Errorf("the workers' containers are too many to compare; write fewer lines, or split the workshop")
	}
	return nil
}

// Excess returns what inner grants and outer doesn't.
func (c *Comparer) Excess(inner, outer *Container) []Excess {
	work := &c.work
	found := slices.Concat(c.networkExcess(inner, outer), c.mountsExcess(inner.Mounts, outer.Mounts),
		secretsExcess(inner.Secrets, outer.Secrets, work), cachesExcess(inner.Caches, outer.Caches),
		keptExcess(inner.Caches, outer.Caches), portsExcess(inner.Ports, outer.Ports), limitsExcess(inner, outer, work))
	if inner.GitAuthor.V == GitAuthorHost && outer.GitAuthor.V != GitAuthorHost {
		found = append(found, excess{key: "git_author", at: inner.GitAuthor.Source.Range, grant: outer.GitAuthor.Source.Range, have: GitAuthorHost, granted: outer.GitAuthor.V})
	}
	out := make([]Excess, len(found))
	for i, x := range found {
		out[i] = Excess{Key: x.key, Have: x.have, Granted: x.granted, At: x.at, Grant: x.grant, Unknown: x.unknown,
			HaveOf: x.haveOf, GrantedOf: x.grantedOf}
		if x.granted == "" && x.grantedOf == (Part{}) && x.key != "network.allow" { // only the nearest thing, for a hint
			out[i].Grant = diag.Range{}
		}
	}
	return out
}

func (c *Comparer) networkExcess(inner, outer *Container) []excess {
	a, b := inner.Network, outer.Network
	pair := networkPair{a.Source.Range, b.Source.Range, [2]firewall.Mode{a.Mode.V, b.Mode.V}, firstRule(a.Allow), firstRule(a.Deny), firstRule(b.Allow), firstRule(b.Deny), [2]*Agent{first(a.Agents), first(b.Agents)}}
	found, done := c.networks[pair]
	if !done {
		found = networkExcess(a, b, &c.work)
		c.networks[pair] = found
	}
	return append(slices.Clip(found), roomExcess(a, b)...)
}

// mountsExcess is told apart by its lists: most workers have the workshop's.
func (c *Comparer) mountsExcess(inner, outer []Mount) []excess {
	if len(inner) == 0 {
		return nil
	}
	pair := [2]*Mount{&inner[0], nil}
	if len(outer) > 0 {
		pair[1] = &outer[0]
	}
	found, done := c.mounts[pair]
	if !done {
		found = mountsExcess(inner, outer, &c.work)
		c.mounts[pair] = found
	}
	return found
}

func sourceOr(s, other diag.Source) diag.Range {
	if s.Range.Filename != "" {
		return s.Range
	}
	return other.Range
}

// keptExcess compares how much caches of one name keep.
func keptExcess(inner, outer []Cache) (out []excess) {
	for _, a := range inner {
		for _, b := range outer {
			if a.Name == b.Name && a.PruneAbove.V > b.PruneAbove.V {
				out = append(out, excess{key: "caches", at: a.At.Range, grant: b.At.Range, summary: fmt.Sprintf("the cache %s keeps more than the workshop's", a.Name),
					haveOf: Part{Cache: &a}, grantedOf: Part{Cache: &b}})
			}
		}
	}
	return out
}

// portsExcess: a port of the worker is reached on more addresses, or at all.
func portsExcess(inner, outer []Port) (out []excess) {
	for _, p := range inner {
		x := excess{key: "ports", at: p.At.Range, haveOf: Part{Port: &p}}
		granted := false
		for _, o := range outer {
			if o.Target.V != p.Target.V {
				continue
			}
			x.grant, x.grantedOf = o.At.Range, Part{Port: &o}
			a, b := p.Host, o.Host
			if a.Source.Template+b.Source.Template != "" {
				granted = granted || a.Source.Template == b.Source.Template
				x.unknown = true
			} else {
				granted = granted || addressWithin(a.V, b.V)
			}
		}
		if !granted {
			out = append(out, x)
		}
	}
	return out
}

// addressWithin reports whether whoever reaches the one address of the host reaches the
// other: the host alone has loopback, and a wildcard is every address.
func addressWithin(inner, outer string) bool {
	a, err := netip.ParseAddr(inner)
	b, worse := netip.ParseAddr(outer)
	if err != nil || worse != nil {
		return inner == outer
	}
	return a == b || a.IsLoopback() || b.IsUnspecified() && (b.Is6() || a.Is4())
}

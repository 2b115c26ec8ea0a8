package workshop

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/durationtext"
)

// excess is something that an inner container has and the outer one, which
// must contain it, doesn't grant.
type excess struct {
	key     string // "network.allow"
	summary string // what exceeds what
	hint    string // what to do
	unknown bool   // whether it exceeds can't be decided, as with a variable
	have    string // what the inner container has, and the outer one at the nearest
	granted string
	// parts of both, where it is about one; have and granted add to them
	haveOf, grantedOf Part
	at                diag.Range // the inner container's line
	grant             diag.Range // the outer container's line; zero where it has none
}

// Part is a part of a container: at most one of its fields is set.
type Part struct {
	Rule   *firewall.Rule // a line of the network
	Agent  *Agent
	Mount  *Mount
	Secret *Secret
	Cache  *Cache
	Port   *Port
}

// widening reports an excess of a worker's `container:` over its workshop's,
// with both places (B40).
func (x excess) widening(outer string) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "widening", Summary: x.summary, Hint: x.hint, Range: x.at,
		Detail: "A worker may only narrow what its workshop grants."}
	if x.grant.Filename != "" {
		d.Related = []diag.Related{{Message: outer, Range: x.grant}}
	}
	return d
}

// narrow checks an entry's `container:` against the workshop's and returns the
// effective container. Every widening is reported; none is corrected in
// silence.
func narrow(base Container, e workerEntry, work *effort, p *problems) Container {
	out, found := exceeding(base, e.Container, work, p)
	for _, x := range found {
		p.add(x.widening("what the workshop grants"))
	}
	return out
}

// exceeding is the effective container, and what it has beyond base.
func exceeding(base Container, c *partialContainer, work *effort, p *problems) (out Container, found []excess) {
	if c == nil {
		return effective(base, &partialContainer{}, work), nil
	}
	out = effective(base, c, work)
	c.idle(out.Network, base.Network, p)
	if c.Network != nil {
		found = append(found, notInWorker(c.Network, base.Network)...)
		found = append(found, networkExcess(out.Network, base.Network, work)...)
	}
	if c.Mounts != nil {
		found = append(found, mountsExcess(*c.Mounts, base.Mounts, work)...)
	}
	if c.Secrets != nil {
		found = append(found, secretsExcess(*c.Secrets, base.Secrets, work)...)
	}
	if c.Caches != nil {
		found = append(found, cachesExcess(*c.Caches, base.Caches)...)
		if c.Mounts != nil { // else they are the workshop's, which are checked
			p.add(cacheOverMount(out.Caches, out.Mounts, work.symbolic)...)
		}
	}
	found = append(found, limitsExcess(&out, &base, work)...)
	if out.GitAuthor.V == GitAuthorHost && base.GitAuthor.V != GitAuthorHost {
		found = append(found, excess{key: "git_author", at: c.at("git_author", c.GitAuthor.Source), grant: base.GitAuthor.Source.Range,
			summary: "`git_author: host` isn't granted by the workshop", hint: "move it to the workshop's container; a worker without it writes `git_author: none`"})
	}
	if c.Runtime != nil {
		found = append(found, excess{key: "runtime", at: c.at("runtime", c.Runtime.Source), grant: base.Runtime.Source.Range,
			summary: "runtime can't be set by a worker: all containers of a workshop share one",
			hint:    "move it to the workshop's container"})
	}
	return out, decided(found)
}

// decided leaves out what only the value of a variable decides, which a symbolic
// workshop doesn't have: it is compared when it is loaded with that.
func decided(found []excess) []excess {
	return slices.DeleteFunc(found, func(x excess) bool { return x.unknown })
}

// effort bounds the comparisons of one load: they are products of lists, and
// a made-up file must not keep validate busy for minutes (B60).
type effort struct {
	ctx  context.Context // nil: none
	left int
	// symbolic: values with a template are stand-ins, see Options.Symbols.
	symbolic bool
	// exact: what is effective is compared, not what is written, see Compare.
	exact bool
}

// maxEffort is about a second of comparing: 100 workers of 1,000 lines each
// under a workshop of 1,000 lines.
const maxEffort = 100_000_000

// spend takes n comparisons; false when none are left. The caller then leaves
// its work, and done refuses the workshop. A context that ends leaves none.
func (e *effort) spend(n int) bool {
	before := e.left
	e.left = max(-1, e.left-n)
	if before>>16 != e.left>>16 && e.ctx != nil && e.ctx.Err() != nil { // now and then: many take 1
		e.left = -1
	}
	return e.left >= 0
}

func (e *effort) done(file string, p *problems) {
	if e.left < 0 {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: diag.Range{Filename: file},
			Summary: "the workers' containers and delegations are too many to compare",
			Hint:    "write fewer lines of allow, deny and mounts in the workers, or split the workshop"})
	}
}

// at returns the place of a key of a partial container, or that of its value.
func (c *partialContainer) at(key string, s diag.Source) diag.Range {
	if s.Range.Filename != "" {
		return s.Range
	}
	if r, ok := c.Keys[key]; ok {
		return r
	}
	return c.Source.Range
}

// limit is an upper limit of a container.
type limit struct {
	key  string
	most float64
	text string
	at   diag.Source
}

// limits are the upper limits of a container, in the order of the spec.
func (c *Container) limits() []limit {
	size := func(key string, v Value[Size]) limit { return limit{key, float64(v.V), v.V.String(), v.Source} }
	r := &c.Resources
	return []limit{
		size("scratch", c.Scratch), size("tmp", c.Tmp), size("shm", c.Shm), size("home", c.Home), size("resources.memory", r.Memory),
		{"resources.cpu", r.CPU.V, number(r.CPU.V), r.CPU.Source},
		{"resources.pids", float64(r.PIDs.V), fmt.Sprint(r.PIDs.V), r.PIDs.Source},
		{"resources.timeout", float64(r.Timeout.V), durationtext.Of(r.Timeout.V), r.Timeout.Source},
	}
}

// limitsExcess compares what has an upper limit, key by key.
func limitsExcess(inner, outer *Container, work *effort) []excess {
	var out []excess
	most := outer.limits()
	for i, have := range inner.limits() {
		x := overLimit(have, most[i])
		if a, b := have.at.Template, most[i].at.Template; work.symbolic && a+b != "" {
			x.unknown = a != b
			x.have, x.granted = cmp.Or(a, have.text), cmp.Or(b, most[i].text)
		}
		if x.unknown || have.most > most[i].most {
			out = append(out, x)
		}
	}
	return append(out, kernelExcess(inner, outer)...)
}

func overLimit(have, most limit) excess {
	name := have.key[strings.LastIndexByte(have.key, '.')+1:]
	whose := "the workshop's"
	if most.at.Range.Filename == "" {
		whose = "the workshop's default of"
	}
	return excess{key: have.key, at: have.at.Range, grant: most.at.Range, have: have.text, granted: most.text,
		summary: fmt.Sprintf("%s %s is more than %s %s", name, have.text, whose, most.text),
		hint:    fmt.Sprintf("write at most %s, or raise %s in the workshop's container", most.text, have.key)}
}

// secretsExcess: a worker gets secrets of the workshop by their names. What is exact is
// where their values come from: under another name a secret is the same.
func secretsExcess(inner, outer []Secret, work *effort) []excess {
	var out []excess
	for _, s := range inner {
		if slices.ContainsFunc(outer, func(o Secret) bool {
			if work.exact {
				return s.origin() == o.origin()
			}
			return o.Name == s.Name
		}) {
			continue
		}
		var names []string
		for _, o := range outer {
			names = append(names, o.Name)
		}
		hint := hintOfNames(s.Name, names, fmt.Sprintf("add `- {name: %s, env: …}` to the secrets of the workshop's container", s.Name))
		x := excess{key: "secrets", at: s.At.Range, haveOf: Part{Secret: &s}, hint: hint, summary: fmt.Sprintf("the workshop has no secret %s", s.Name)}
		if len(outer) > 0 {
			x.grant = outer[0].At.Range
		}
		for _, o := range outer {
			if work.exact && o.Name == s.Name {
				x.grant, x.grantedOf = o.At.Range, Part{Secret: &o}
				x.unknown = s.File.Source.Template+o.File.Source.Template != ""
			}
		}
		out = append(out, x)
	}
	return out
}

// origin says where the value of a secret comes from.
func (s *Secret) origin() string {
	if s.Env != "" {
		return "the variable " + s.Env
	}
	return "the file " + cmp.Or(s.File.Source.Template, path.Clean(s.File.V))
}

// hintOfNames is the hint about a name that the workshop doesn't have: the one that was
// meant, else those that there are, and what adds it.
func hintOfNames(name string, have []string, add string) string {
	if near := nearest(name, have); near != "" {
		return "did you mean " + near + "?"
	}
	if len(have) > 0 {
		return "the workshop has " + strings.Join(have, ", ") + "; " + add
	}
	return add
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

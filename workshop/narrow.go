package workshop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// excess is something that an inner container has and the outer one, which
// must contain it, doesn't grant.
type excess struct {
	key     string     // "network.allow"
	summary string     // what exceeds what
	hint    string     // what to do
	unknown bool       // whether it exceeds depends on a variable
	at      diag.Range // the inner container's line
	grant   diag.Range // the outer container's line; zero where it has none
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
	c := e.Container
	if c == nil {
		return effective(base, &partialContainer{}, work)
	}
	out := effective(base, c, work)
	var found []excess
	if c.Network != nil {
		found = append(found, notInWorker(c.Network, base.Network)...)
		found = append(found, networkExcess(out.Network, base.Network, work)...)
	}
	if c.Mounts != nil {
		found = append(found, mountsExcess(*c.Mounts, base.Mounts, work)...)
	}
	if c.Secrets != nil {
		found = append(found, secretsExcess(*c.Secrets, base.Secrets)...)
	}
	if c.Caches != nil {
		found = append(found, cachesExcess(*c.Caches, base.Caches)...)
		if c.Mounts != nil { // else they are the workshop's, which are checked
			p.add(cacheOverMount(out.Caches, out.Mounts, work.symbolic)...)
		}
	}
	found = append(found, limitsExcess(c, base, work.symbolic)...)
	if out.GitAuthor.V == GitAuthorHost && base.GitAuthor.V != GitAuthorHost {
		found = append(found, excess{key: "git_author", at: c.at("git_author", c.GitAuthor.Source), grant: base.GitAuthor.Source.Range,
			summary: "`git_author: host` isn't granted by the workshop", hint: "move it to the workshop's container; a worker without it writes `git_author: none`"})
	}
	if c.Runtime != nil {
		found = append(found, excess{key: "runtime", at: c.at("runtime", c.Runtime.Source), grant: base.Runtime.Source.Range,
			summary: "runtime can't be set by a worker: all containers of a workshop share one",
			hint:    "move it to the workshop's container"})
	}
	for _, x := range decided(found) {
		p.add(x.widening("what the workshop grants"))
	}
	return out
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

// limitsExcess compares what has an upper limit, key by key. What a variable says in a
// symbolic workshop is compared at `up`.
func limitsExcess(c *partialContainer, base Container, symbolic bool) []excess {
	var out []excess
	more := func(more bool, have, most diag.Source) bool {
		return more && !(symbolic && have.Template+most.Template != "")
	}
	size := func(key string, have *Value[Size], most Value[Size]) {
		if have != nil && more(have.V > most.V, have.Source, most.Source) {
			out = append(out, overLimit(c, key, have.V.String(), most.V.String(), have.Source, most.Source))
		}
	}
	size("scratch", c.Scratch, base.Scratch)
	size("tmp", c.Tmp, base.Tmp)
	size("shm", c.Shm, base.Shm)
	size("home", c.Home, base.Home)
	if r := c.Resources; r != nil {
		size("resources.memory", r.Memory, base.Resources.Memory)
		if r.CPU != nil && more(r.CPU.V > base.Resources.CPU.V, r.CPU.Source, base.Resources.CPU.Source) {
			out = append(out, overLimit(c, "resources.cpu", number(r.CPU.V), number(base.Resources.CPU.V), r.CPU.Source, base.Resources.CPU.Source))
		}
		if r.PIDs != nil && more(r.PIDs.V > base.Resources.PIDs.V, r.PIDs.Source, base.Resources.PIDs.Source) {
			out = append(out, overLimit(c, "resources.pids", fmt.Sprint(r.PIDs.V), fmt.Sprint(base.Resources.PIDs.V), r.PIDs.Source, base.Resources.PIDs.Source))
		}
		if r.Timeout != nil && more(r.Timeout.V > base.Resources.Timeout.V, r.Timeout.Source, base.Resources.Timeout.Source) {
			out = append(out, overLimit(c, "resources.timeout", durationText(r.Timeout.V), durationText(base.Resources.Timeout.V), r.Timeout.Source, base.Resources.Timeout.Source))
		}
	}
	return out
}

func overLimit(c *partialContainer, key, have, most string, at, grant diag.Source) excess {
	name := key[strings.LastIndexByte(key, '.')+1:]
	whose := "the workshop's"
	if grant.Range.Filename == "" {
		whose = "the workshop's default of"
	}
	return excess{key: key, at: c.at(key, at), grant: grant.Range,
		summary: fmt.Sprintf("%s %s is more than %s %s", name, have, whose, most),
		hint:    fmt.Sprintf("write at most %s, or raise %s in the workshop's container", most, key)}
}

// secretsExcess: a worker gets secrets of the workshop by their names.
func secretsExcess(inner, outer []Secret) []excess {
	var out []excess
	for _, s := range inner {
		if slices.ContainsFunc(outer, func(o Secret) bool { return o.Name == s.Name }) {
			continue
		}
		var names []string
		for _, o := range outer {
			names = append(names, o.Name)
		}
		hint := hintOfNames(s.Name, names, fmt.Sprintf("add `- {name: %s, env: …}` to the secrets of the workshop's container", s.Name))
		x := excess{key: "secrets", at: s.At.Range, hint: hint, summary: fmt.Sprintf("the workshop has no secret %s", s.Name)}
		if len(outer) > 0 {
			x.grant = outer[0].At.Range
		}
		out = append(out, x)
	}
	return out
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

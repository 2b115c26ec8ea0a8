package workshop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop/worker"
)

// member is a worker of the workshop: an entry of one of its files.
type member struct {
	workerEntry
	// within is the container that the entry narrows, and file the one that has it.
	within Container
	file   *shared
	own    *Container // of a file of another repository, by itself
	prefix string     // of the names that the file has
	// narrowed is what files say of it that extend the one that has it, the nearest first.
	narrowed []narrowing
}

// members are all workers, in the order of the files: those of the bases, the file's own,
// and those of its imports, whose names begin with prefix.
func (f *shared) members(within Container, prefix string, work *effort) (out []member) {
	if f.base != nil {
		out = f.base.members(within, prefix, work)
	}
	var own *Container
	if f.as != ownFile {
		own = f.alone(work)
	}
	for _, e := range f.entries {
		if f.narrows(e) {
			i := slices.IndexFunc(out, func(m member) bool { return m.file.as == baseFile && m.Name.V == prefix+e.Name.V })
			out[i].narrowed = append(out[i].narrowed, narrowing{f, e})
			continue
		}
		e.Name.V = prefix + e.Name.V
		if own != nil {
			e.Container = capped(e.Container, &within, own)
		}
		if f.as == importedFile || f.form.Needs != nil {
			e.Container = f.inNeeds(e.Container, &within)
		}
		out = append(out, member{e, within, f, own, prefix, nil})
	}
	for _, x := range f.imports {
		if granted, ok := f.granted(x, within, own, work); ok {
			out = append(out, x.members(granted, prefix+x.as.V+importMark, work)...)
		}
	}
	return out
}

// granted is what an import gets: what it needs, of what the file grants it (B47). Without
// a grant it has no network, no mounts, no secrets, caches and variables. own is the file's
// container by itself where that is of another repository.
func (f *shared) granted(x imported, within Container, own *Container, work *effort) (Container, bool) {
	written, has := f.form.Grant[x.as.V]
	if n := f.find(f.root, "grant"); !has && n != nil && hasKey(n, x.as.V) {
		return within, false // it has an error
	}
	grant := alone(&written.partialContainer)
	before := f.errors
	if own != nil {
		grant = f.sourcedIn(capped(grant, &within, own), within.Mounts)
	}
	given := narrow(within, workerEntry{Container: grant}, work, f.problems)
	f.bare(given.Mounts, within.Mounts, work)
	if f.errors > before {
		return given, false
	}
	if given.Env = grant.Env; grant.GitAuthor == nil {
		given.GitAuthor = Value[string]{}
	}
	needs := alone(nil)
	if x.form.Needs != nil {
		needs = alone(&x.form.Needs.partialContainer)
	}
	mounts, found := sourced(list(needs.Mounts), given.Mounts)
	needs.Mounts = &mounts
	out := effective(given, needs, work)
	needs.idle(out.Network, given.Network, f.problems)
	x.checkCaches(out.Caches, out.Mounts)
	x.checkMounts(out.Mounts)
	found = slices.Concat(found, networkExcess(out.Network, given.Network, work), roomExcess(out.Network, given.Network),
		mountsExcess(mounts, given.Mounts, work), barer(mounts, given.Mounts, work),
		secretsExcess(list(needs.Secrets), given.Secrets, work), cachesExcess(list(needs.Caches), given.Caches), limitsExcess(&out, &given, work))
	if found = decided(found); len(found) == 0 {
		return out, true
	}
	d := diag.Diagnostic{Severity: diag.Error, Code: "import-needs", Range: x.as.Source.Range,
		Detail: "Where the workshop's container doesn't have these, they are written there, too: a grant narrows it.",
		Hint:   "write below workshop:\n  grant:\n    " + x.as.V + ":" + x.needsText(within.Mounts)}
	if f.as != ownFile {
		d.Detail, d.Hint = "", "that is for those who keep "+f.id+" to grant; take a version of it that does"
	}
	var lacks []string
	for _, n := range found {
		lacks = append(lacks, n.needed())
		if len(d.Related) < 10 {
			d.Related = append(d.Related, diag.Related{Message: "needed here", Range: n.at})
		}
	}
	if has {
		d.Related = append(d.Related, diag.Related{Message: "what it is granted", Range: grant.Source.Range})
	}
	d.Summary = fmt.Sprintf("%s needs what it isn't granted: %s", x.as.V, strings.Join(firstOf(slices.Compact(lacks), 10), ", "))
	f.add(d)
	return out, false
}

// needed says what is lacking.
func (x excess) needed() string {
	switch {
	case x.haveOf.Rule != nil:
		return ruleText(*x.haveOf.Rule)
	case x.haveOf.Agent != nil:
		return "agents for " + x.haveOf.Agent.String()
	case x.haveOf.Mount != nil && x.haveOf.Mount.Source.V == "":
		return "a mount at " + x.haveOf.Mount.Target.V
	case x.haveOf.Mount != nil && x.have != "":
		return "the mount " + x.haveOf.Mount.Entry() + " " + x.have + ", over which it is granted another one"
	case x.haveOf.Mount != nil:
		return "the mount " + x.haveOf.Mount.Entry()
	case x.haveOf.Secret != nil:
		return "the secret " + x.haveOf.Secret.Name
	case x.haveOf.Cache != nil:
		return "the cache " + x.haveOf.Cache.Name
	case x.have != "":
		return strings.TrimPrefix(strings.TrimPrefix(x.key, "resources."), "network.") + " " + x.have
	}
	return x.summary
}

// needsText are the needs of an import as a grant, to paste. A mount without a source has
// that of the workshop's at its target.
func (x imported) needsText(have []Mount) string {
	n := x.find(x.root, "needs")
	if n == nil {
		return " {}"
	}
	var lines strings.Builder
	for _, p := range n.pairs {
		text, whole := x.src.flow(p.value)
		if p.key.text == "mounts" && x.form.Needs.Mounts != nil {
			text, whole = "["+strings.Join(mountEntries(*x.form.Needs.Mounts, have), ", ")+"]", true
		}
		if !whole {
			text = "… # as in needs of " + x.id
		}
		lines.WriteString("\n      " + p.key.text + ": " + text)
	}
	return lines.String()
}

func mountEntries(needed, have []Mount) (out []string) {
	for _, m := range needed {
		if m.Source.V == "" {
			m.Source = Value[string]{V: "./DIRECTORY"}
			if i := slices.IndexFunc(have, func(h Mount) bool { return h.Target.V == m.Target.V }); i >= 0 {
				m.Source = have[i].Source
			}
		}
		entry := m.Entry()
		if entry[0] != '{' {
			entry = strconv.Quote(entry)
		}
		out = append(out, entry)
	}
	return out
}

// alone is a container that has of the workshop's only what is written: no network and no
// mounts unless they are.
func alone(c *partialContainer) *partialContainer {
	out := partialContainer{}
	if c != nil {
		out = *c
	}
	if out.Network == nil {
		out.Network = &partialNetwork{Source: out.Source, Mode: &Value[firewall.Mode]{V: firewall.None}}
	}
	if out.Mounts == nil {
		out.Mounts = &[]Mount{}
	}
	return &out
}

func list[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return *p
}

// sourced are the mounts of an imported file: one without a source has that of the
// granted mount at its target, with what is mounted over that.
func sourced(mounts, granted []Mount) (out []Mount, lacking []excess) {
	taken := map[string]bool{}
	for _, m := range mounts {
		taken[m.Target.V] = true
	}
	for _, m := range mounts {
		if m.Source.V != "" {
			out = append(out, m)
			continue
		}
		at := slices.IndexFunc(granted, func(g Mount) bool { return g.Target.V == m.Target.V })
		if at < 0 {
			lacking = append(lacking, excess{key: "mounts", at: m.At.Range, haveOf: Part{Mount: &m}, summary: "there is no mount at " + m.Target.V})
			continue
		}
		out = append(out, m.over(granted[at]))
		for _, g := range granted {
			if rel, below := subpath.Below(g.Target.V, m.Target.V); below && rel != "" && !taken[g.Target.V] {
				taken[g.Target.V] = true
				out = append(out, Mount{Target: g.Target, ReadWrite: m.ReadWrite && g.ReadWrite, At: m.At}.over(g))
			}
		}
	}
	return out, lacking
}

// over is a mount without source with that of a granted one.
func (m Mount) over(g Mount) Mount {
	m.Source, m.OutsideProject, m.AllowSockets, m.Copy = g.Source, g.OutsideProject, g.AllowSockets, m.Copy || g.Copy
	m.Exclude = slices.Concat(g.Exclude, m.Exclude)
	return m
}

// inNeeds is the container of an imported worker: without a word of them it has the
// secrets and caches that its file needs.
func (f *shared) inNeeds(c *partialContainer, needs *Container) *partialContainer {
	out := partialContainer{}
	if c != nil {
		out = *c
	}
	if out.Secrets == nil {
		out.Secrets = &needs.Secrets
	}
	if out.Caches == nil {
		out.Caches = &needs.Caches
	}
	return f.sourcedIn(&out, needs.Mounts)
}

// sourcedIn is a container with mounts that have their sources from those that are granted.
func (f *shared) sourcedIn(c *partialContainer, granted []Mount) *partialContainer {
	if c == nil || c.Mounts == nil {
		return c
	}
	out := *c
	mounts, lacking := sourced(*c.Mounts, granted)
	out.Mounts = &mounts
	f.checkMounts(mounts)
	for _, x := range lacking {
		f.fail(x.at, "widening", "the file's needs have no mount at "+x.haveOf.Mount.Target.V, "add it there")
	}
	return &out
}

// unhidden reports what mounts of the project hide, or of its base, and a worker shows. A
// worker of a base may show what that alone hides from others, and so may one of a project
// without a base.
func (m member) unhidden(c *Container, work *effort) {
	inherits := func(a, b Mount) bool { return a.At.Range == b.At.Range }
	switch f := m.file; {
	case f.as == ownFile && f.form.Needs == nil && f.base == nil:
		return
	case f.as == baseFile && slices.EqualFunc(m.within.Mounts, m.own.Mounts, inherits):
		return
	}
	m.file.bare(c.Mounts, m.within.Mounts, work)
}

// bare reports mounts that show what others hide from those that grant them.
func (f *shared) bare(mounts, granted []Mount, work *effort) {
	for _, x := range decided(barer(mounts, granted, work)) {
		f.add(x.widening("what the workshop grants"))
	}
}

// knownGrants refuses grants for what isn't imported, in the file and those that it is made
// of.
func (f *shared) knownGrants() {
	if f.base != nil {
		f.base.knownGrants()
	}
	var names []string
	for _, x := range f.imports {
		names = append(names, x.as.V)
		x.knownGrants()
	}
	grants := f.find(f.root, "grant")
	if grants == nil {
		return
	}
	for _, p := range grants.pairs {
		if name := p.key.text; !slices.Contains(names, name) {
			hint := "import it: imports: [{as: " + clip(name) + ", from: …}]"
			if near := nearest(name, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			f.fail(p.key.rng, "grant-unknown", fmt.Sprintf("nothing is imported as %s", clip(name)), hint)
		}
	}
}

// doubleDash refuses a name of a file's own that could be one of an import.
func doubleDash(d *decoder, item string, name Value[string]) bool {
	if !strings.Contains(name.V, importMark) {
		return false
	}
	hint := "write " + strings.ReplaceAll(name.V, importMark, "-")
	if as, _, _ := strings.Cut(name.V, importMark); item == "worker" && worker.ValidName(as) {
		hint = fmt.Sprintf("leave out a worker of an import, which is there without a word: `grant: {%s: {…}}` says what those of %s get, and their tools are the import's; for one of your own %s", as, as, hint)
	}
	d.fail(name.Source.Range, "bad-name", fmt.Sprintf("the name %q has two dashes, which stand between an import and its worker", name.V), hint)
	return true
}

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

// A project narrows a worker of its base by its name: by an item of `workers` that has a
// container, tools, and nothing else (B47).

// narrowing is what a file says of a worker of its base.
type narrowing struct {
	*shared
	entry workerEntry
}

// basesWorker is the item of a worker that a base of the file has.
func (f *shared) basesWorker(name string) (workerEntry, bool) {
	for _, b := range slices.Backward(f.bases()) { // whose it is, not who narrows it
		for _, e := range b.entries {
			if e.Name.V == name {
				return e, true
			}
		}
	}
	return workerEntry{}, false
}

// basesNames are the names of all workers of the file's bases.
func (f *shared) basesNames() (names []string) {
	for _, b := range f.bases() {
		for _, e := range b.entries {
			if !slices.Contains(names, e.Name.V) {
				names = append(names, e.Name.V)
			}
		}
	}
	return names
}

// workersClosed reports whether a base has no workers but its own.
func (f *shared) workersClosed() bool {
	return slices.ContainsFunc(f.bases(), func(b *shared) bool { return !b.form.Open.opens("workshop.workers") })
}

// narrows reports whether an item narrows a worker of a base.
func (f *shared) narrows(e workerEntry) bool {
	_, has := f.basesWorker(e.Name.V)
	return has && e.File.V == "" && (e.Container != nil || e.Inline != nil) && toolsAlone(e.Inline)
}

// toolsAlone reports whether what an item says of what its worker does is its tools, or
// nothing.
func toolsAlone(i *worker.Inline) bool {
	return i == nil || i.ToolsKey != "" && i.Description+i.Instructions+i.Model+i.ResultFile.Name == "" && i.DelegatesTo == nil
}

// ofBase returns the items of the file whose workers are its own, and the containers of
// those that narrow a base's. It refuses what could be either, and keys that don't narrow.
func (f *shared) ofBase() (own []workerEntry, narrowing []*partialContainer) {
	seen := map[string]bool{}
	for _, e := range f.entries {
		base, has := f.basesWorker(e.Name.V)
		if !has && e.Inline != nil && e.File.V == "" && toolsAlone(e.Inline) {
			// It would be another worker as soon as the base has one of this name, and
			// narrows none where the name is a slip.
			hint := f.workers.missingHint(e.Name.V)
			if slices.Contains(f.workers.existing, e.Name.V) && nearest(e.Name.V, f.workers.ofBases) == "" {
				hint = "leave `" + e.Inline.ToolsKey + "` out: there is a file for " + e.Name.V
			}
			f.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-not-found", Range: e.Name.Source.Range,
				Summary: fmt.Sprintf("the base has no worker %s whose tools could be narrowed", clip(e.Name.V)),
				Hint:    hint})
			continue
		}
		if !has {
			own = append(own, e)
			continue
		}
		refuse := func(code string, at diag.Range, summary, hint string) {
			f.add(diag.Diagnostic{Severity: diag.Error, Code: code, Range: at, Summary: summary, Hint: hint,
				Related: []diag.Related{{Message: "the base's", Range: base.Name.Source.Range}}})
		}
		name := e.Name.V
		if !f.narrows(e) {
			hint := fmt.Sprintf("remove it, as the base's workers are there without a word; to narrow this one write `- {name: %s, container: {network: none}}` or `- {name: %s, tools: [read_file]}`, and no more of what it does", name, name)
			if f.workersClosed() {
				hint += ": that is the base's alone"
			} else {
				hint += "; or choose another name for one of your own"
			}
			refuse("duplicate-worker", e.Name.Source.Range, fmt.Sprintf("the base has a worker %s already", name), hint)
			if e.Container != nil {
				narrowing = append(narrowing, e.Container)
			}
			continue
		}
		if e.Container != nil {
			narrowing = append(narrowing, e.Container)
		}
		if seen[name] {
			refuse("duplicate-worker", e.Name.Source.Range, fmt.Sprintf("the base's worker %s is narrowed twice", name), "make one item of them")
		}
		seen[name] = true
		if found, _ := f.workers.candidates(name); len(found) > 0 {
			refuse("duplicate-worker", e.Name.Source.Range, fmt.Sprintf("the base has a worker %s, and the project has %s", name, f.workers.shown(found[0].Path)),
				"rename the file: this item narrows the base's worker, which has a file of its own")
		}
		if e.Container == nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(e.Container.Keys)) {
			if !strings.Contains(key, ".") && !slices.Contains(narrowingKeys(), key) {
				refuse("base-closed", e.Container.Keys[key], fmt.Sprintf("%s of the base's worker %s is the base's", key, name),
					"leave it out: a project may narrow "+strings.Join(narrowingKeys(), ", "))
			}
		}
	}
	return own, narrowing
}

// narrowingKeys are the keys of a container that can only narrow.
func narrowingKeys() (out []string) {
	for _, r := range keyRules {
		if key, is := strings.CutPrefix(r.key, "container."); is && r.base == narrowed && !strings.ContainsAny(key, ".[") {
			out = append(out, key)
		}
	}
	return out
}

// over is the container of the base's worker with what the file narrows of it. What is more
// than the worker has, or shows what is hidden from it, is an error. inBase is what the
// worker has without the file: what it has there, the workshop's container took away.
func (n narrowing) over(has Container, inBase func() Container, work *effort) Container {
	out, found := n.less(has, work, n.problems)
	if len(found) == 0 {
		return out
	}
	_, beyond := n.less(inBase(), work, &problems{})
	words := strings.NewReplacer("the workshop has", "the base's worker has", "the workshop's", "the base's", "the workshop", "the base")
	for _, x := range found {
		d := x.widening("what the workshop grants")
		if slices.ContainsFunc(beyond, func(o excess) bool {
			return o.key == x.key && o.at == x.at && (o.haveOf.Rule == nil || o.summary == x.summary) // a preset's lines have one place
		}) {
			d.Code, d.Detail = "base-widening", "A project may only narrow what a worker of its base has."
			d.Summary = words.Replace(d.Summary)
			d.Hint = "leave it out: more is for those who keep the base to grant"
			if len(d.Related) > 0 {
				d.Related = []diag.Related{{Message: "what the base's worker has", Range: d.Related[0].Range}}
			}
		}
		d.Summary = n.entry.Name.V + ": " + d.Summary
		n.add(d)
	}
	return out
}

// less is the container of the base's worker with what the file narrows of it, and what is
// more than the worker has. Secrets and caches that the file doesn't name stay, and ports do.
func (n narrowing) less(has Container, work *effort, p *problems) (Container, []excess) {
	c := n.entry.Container
	if c == nil {
		return has, nil
	}
	if n.as != ownFile {
		c = capped(c, &has, n.alone(work))
	}
	less := *c
	if less.Secrets == nil {
		less.Secrets = &has.Secrets
	}
	if less.Caches == nil {
		less.Caches = &has.Caches
	}
	out, found := exceeding(has, &less, work, p)
	if out.Ports = has.Ports; less.Mounts != nil {
		found = append(found, decided(barer(out.Mounts, has.Mounts, work))...)
	}
	return out, found
}

// inBase is what the member's worker has in the base of its i-th narrowing, without that.
func (m member) inBase(i int, work *effort) Container {
	e := m.workerEntry
	if written, ok := m.narrowed[i].basesWorker(e.Name.V); ok { // without the project's limits
		e = written
	}
	c, _ := exceeding(m.narrowed[i].base.container(work), e.Container, work, &problems{})
	for _, n := range m.narrowed[:i] {
		c, _ = n.less(c, work, &problems{})
	}
	return c
}

// tools gives the base's worker those of its tools that the file names, where it names some.
// A tool that it doesn't have, or only with a narrower limit, is an error.
func (n narrowing) tools(def *worker.Definition, work *effort) {
	if n.entry.Inline == nil {
		return
	}
	less, diags := n.entry.Inline.Definition()
	for _, d := range diags {
		if d.Code == "worker-unknown-tool" { // as one that the base's worker doesn't have
			d.Severity, d.Summary = diag.Error, n.entry.Name.V+": "+d.Summary
		}
		n.add(d)
	}
	if !work.spend(len(less.Tools) * len(def.Tools)) {
		return
	}
	for _, o := range tool.Excess(less.Offers(), def.Offers()) {
		t := less.Tools[slices.IndexFunc(less.Tools, func(t worker.Tool) bool { return t.Name == o.Name && t.Pattern == o.Limit })]
		n.add(diag.Diagnostic{Severity: diag.Error, Code: "base-widening", Range: t.Source.Range,
			Summary: fmt.Sprintf("%s: the base's worker doesn't have the tool %s", n.entry.Name.V, clip(t.Written)),
			Detail:  "A project may only narrow what a worker of its base has.", Hint: "leave it out: more is for those who keep the base to grant",
			Related: []diag.Related{{Message: "the base's worker", Range: def.Source.Range}}})
	}
	def.Tools = less.Tools
}

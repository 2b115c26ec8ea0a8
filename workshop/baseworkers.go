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
			f.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-not-found", Range: e.Name.Source.Range,
				Summary: fmt.Sprintf("the base has no worker %s whose tools could be narrowed", clip(e.Name.V)),
				Hint:    "its workers are " + strings.Join(firstOf(f.basesNames(), 20), ", ") + "; to define one here, write what it does: instructions or a description"})
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
			if slices.ContainsFunc(f.bases(), func(b *shared) bool { return !b.form.Open.opens("workshop.workers") }) {
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

// over is the container of the base's worker with what the file narrows of it. Secrets and
// caches that it doesn't name stay, and ports do. What is more than the worker has, or shows
// what is hidden from it, is an error.
func (n narrowing) over(has Container, work *effort) Container {
	c := n.entry.Container
	if c == nil {
		return has
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
	found := &problems{}
	out := narrow(has, workerEntry{Container: &less}, work, found)
	if out.Ports = has.Ports; less.Mounts != nil {
		for _, x := range decided(barer(out.Mounts, has.Mounts, work)) {
			found.add(x.widening(""))
		}
	}
	words := strings.NewReplacer("the workshop's", "the base's", "the workshop", "the base")
	for _, d := range found.list {
		if d.Code == "widening" {
			d.Code, d.Detail = "base-widening", "A project may only narrow what a worker of its base has."
			d.Summary = n.entry.Name.V + ": " + words.Replace(d.Summary)
			d.Hint = "leave it out: more is for those who keep the base to grant"
			if len(d.Related) > 0 {
				d.Related = []diag.Related{{Message: "what the base's worker has", Range: d.Related[0].Range}}
			}
		}
		n.add(d)
	}
	return out
}

// tools gives the base's worker those of its tools that the file names, where it names some.
// A tool that it doesn't have, or only with a narrower limit, is an error.
func (n narrowing) tools(def *worker.Definition, work *effort) {
	if n.entry.Inline == nil {
		return
	}
	less, diags := n.entry.Inline.Definition()
	n.add(diags...)
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

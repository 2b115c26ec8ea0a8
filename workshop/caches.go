package workshop

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// Cache is a directory of one worker that outlives it: a volume of the project.
type Cache struct {
	Name   string
	Target Value[string] // absolute path in the container
	// PruneAbove is the size above which the cache is emptied when its worker
	// starts.
	PruneAbove Value[Size]
	At         diag.Source
}

// DefaultPruneAbove is what sccache and the caches of CI services allow by default.
const DefaultPruneAbove Size = 10 << 30

// cacheNamePattern has no dot: it separates a worker's name from its cache's.
const cacheNamePattern = `^[a-z0-9][a-z0-9_-]{0,31}$`

// cacheForm is the long form of a cache.
type cacheForm struct {
	Source     diag.Source
	Name       *Value[string] `key:"name" required:"true" validate:"cachename" literal:"Names don't depend on the machine." example:"write name: npm" doc:"Name of a known cache, or any with a target."`
	Target     *Value[string] `key:"target" validate:"oneline" literal:"Where a worker finds its cache must be visible in the file." example:"write target: /cache/models" doc:"Absolute path in the container; default of a known cache: /caches/NAME."`
	PruneAbove *Value[Size]   `key:"prune_above" validate:"min=1048576" literal:"What a start removes must be visible in the file." example:"write prune_above: 5G" default:"10G" doc:"Size above which the cache is emptied when its worker starts."`
}

func (*cacheForm) title() string { return "a cache" }

var cacheKeys = map[string]instead{
	"path":     {"", "write target: /PATH"},
	"paths":    {"A cache is one directory.", "write target: /PATH"},
	"dir":      {"", "write target: /PATH"},
	"source":   {"A cache is not a directory of the host: that is a mount.", "write target: /PATH, or write mounts"},
	"size":     {"A cache has no quota.", "write prune_above: 10G"},
	"max_size": {"A cache has no quota.", "write prune_above: 10G"},
	"shared":   {"A cache belongs to one worker.", hintRemove},
	"key":      {"A cache is keyed by what its worker is granted.", hintRemove},
}

func (c *Cache) decode(d *decoder, n *node, f *field) bool {
	c.At = diag.Source{Range: n.rng}
	c.PruneAbove.V = DefaultPruneAbove
	var form cacheForm
	switch n.kind {
	case scalarNode:
		name := *formOf(reflect.TypeFor[cacheForm]()).byKey["name"]
		name.keyName = "cache"
		form.Name = &Value[string]{}
		if !form.Name.decode(d, n, &name) {
			return false
		}
	case mapNode:
		if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
			return false
		}
	default:
		d.wrongType(n, f, "the name of a cache, or a mapping {name, target}")
		return false
	}
	c.Name = form.Name.V
	if d.worker {
		if form.Target != nil || form.PruneAbove != nil {
			d.fail(n.rng, "bad-cache", "a worker only names caches; the workshop's container says where they are", "write caches: ["+c.Name+"]")
			return false
		}
		return true
	}
	if form.PruneAbove != nil {
		c.PruneAbove = *form.PruneAbove
	}
	if form.Target == nil {
		if knownCache(c.Name) == nil {
			d.cacheUnknown(n, form.Name)
			return false
		}
		c.Target.V = path.Join(CacheDir, c.Name)
		return true
	}
	c.Target = *form.Target
	before := d.errors
	d.checkCacheTarget(c)
	return d.errors == before
}

// cacheUnknown reports a name alone of which nobody knows where its tool looks.
func (d *decoder) cacheUnknown(n *node, name *Value[string]) {
	hint := "write {name: " + clip(name.V) + ", target: /PATH}, or one of: " + strings.Join(knownCacheNames(), ", ")
	if near := nearest(name.V, knownCacheNames()); near != "" {
		hint = "did you mean " + near + "?"
	}
	d.fail(n.rng, "cache-unknown", fmt.Sprintf("the cache %q has no target, and is not a known one", clip(name.V)), hint)
}

// checkCacheTarget: a cache is where a mount could be, and in a memory file system
// only at its top: the directories on the way to it would be root's.
func (d *decoder) checkCacheTarget(c *Cache) {
	before := d.errors
	d.checkTarget(&Mount{Target: c.Target})
	if d.errors > before {
		return
	}
	t := c.Target.V
	if own, _ := TmpfsAt(t); own != "" && path.Dir(t) != own {
		d.fail(c.Target.Source.Range, "bad-cache", fmt.Sprintf("the target %s is inside of %s, whose directories the worker makes itself", t, own),
			"write target: "+path.Join(CacheDir, c.Name)+", and tell the tool by a variable in env")
	}
}

// checkCaches checks the rules about several caches of one container.
func (d *decoder) checkCaches(caches []Cache, mounts []Mount) {
	names := map[string]diag.Range{}
	for i := range caches {
		d.once("caches", names, caches[i].Name, caches[i].At.Range, "cache")
	}
	if d.worker {
		return // names alone
	}
	for i := range caches {
		for j := range caches[:i] {
			if overlap(caches[i].Target.V, caches[j].Target.V) && caches[i].Name != caches[j].Name {
				d.refuse("caches", diag.Diagnostic{
					Severity: diag.Error, Code: "duplicate-cache", Summary: fmt.Sprintf("the caches %s and %s are one inside of the other, at %s", caches[j].Name, caches[i].Name, caches[i].Target.V),
					Hint: "choose another target", Range: caches[i].At.Range, Related: []diag.Related{{Message: "the other one", Range: caches[j].At.Range}},
				})
			}
		}
	}
	for _, x := range cacheOverMount(caches, mounts, d.symbols != nil) {
		d.refuse("caches", x)
	}
}

func overlap(a, b string) bool { return subpath.Within(a, b) || subpath.Within(b, a) }

// cacheOverMount reports caches at, inside of or around a mount: the mount point
// would be in a directory of the host, and what tools of the host read there would be
// a worker's.
func cacheOverMount(caches []Cache, mounts []Mount, symbolic bool) (found []diag.Diagnostic) {
	for i := range caches {
		c := &caches[i]
		for j := range mounts {
			m := &mounts[j]
			if c.Target.V == "" || symbolic && m.Target.Source.Template != "" || !overlap(c.Target.V, m.Target.V) {
				continue
			}
			found = append(found, diag.Diagnostic{
				Severity: diag.Error, Code: "cache-over-mount", Summary: fmt.Sprintf("the cache %s at %s and the mount at %s are one inside of the other", c.Name, c.Target.V, m.Target.V),
				Detail: "A cache is never at a path of the host.", Hint: fmt.Sprintf("write target: %s, and tell the tool by a variable in env", path.Join(CacheDir, c.Name)),
				Range: c.At.Range, Related: []diag.Related{{Message: "the mount", Range: m.At.Range}},
			})
			break
		}
	}
	return found
}

// namedCaches returns the workshop's caches that a worker names, as namedSecrets
// does.
func namedCaches(base []Cache, named *[]Cache) []Cache {
	if named == nil {
		return nil
	}
	var out []Cache
	for _, c := range *named {
		if i := slices.IndexFunc(base, func(b Cache) bool { return b.Name == c.Name }); i >= 0 {
			b := base[i]
			b.At = c.At
			out = append(out, b)
		}
	}
	return out
}

// cachesExcess: a worker gets caches of the workshop by their names.
func cachesExcess(inner, outer []Cache) []excess {
	names := make([]string, len(outer))
	for i := range outer {
		names[i] = outer[i].Name
	}
	var out []excess
	for _, c := range inner {
		if slices.Contains(names, c.Name) {
			continue
		}
		entry := c.Name
		if knownCache(entry) == nil {
			entry = "{name: " + c.Name + ", target: /PATH}"
		}
		hint := hintOfNames(c.Name, names, fmt.Sprintf("add `%s` to the caches of the workshop's container", entry))
		x := excess{key: "caches", at: c.At.Range, haveOf: Part{Cache: &c}, hint: hint, summary: fmt.Sprintf("the workshop has no cache %s", c.Name)}
		if len(outer) > 0 {
			x.grant = outer[0].At.Range
		}
		out = append(out, x)
	}
	return out
}

// knownToWorkshop keeps the names that the workshop has, see withoutFollowUps.
func knownToWorkshop(named *[]Cache, base []Cache) *[]Cache {
	if named == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(*named), func(c Cache) bool {
		return !slices.ContainsFunc(base, func(b Cache) bool { return b.Name == c.Name })
	})
	return &out
}

// unusedCaches warns of caches that no worker names, as unusedSecrets does.
func unusedCaches(w *Workshop, entries []member, p *problems) {
	named := map[string]bool{}
	for _, e := range entries {
		if e.Container != nil && e.Container.refusedBelow("caches") {
			return // it is reported
		}
		if e.Container != nil && e.Container.Caches != nil {
			for _, c := range *e.Container.Caches {
				named[c.Name] = true
			}
		}
	}
	for _, c := range w.Container.Caches {
		if !named[c.Name] && len(entries) > 0 {
			p.add(diag.Diagnostic{Severity: diag.Warning, Code: "cache-unused", Range: c.At.Range,
				Summary: fmt.Sprintf("no worker uses the cache %s", c.Name),
				Detail:  "A worker gets only the caches that its entry names.",
				Hint:    fmt.Sprintf("name it where it is needed: `- {name: %s, container: {caches: [%s]}}`", entries[0].Name.V, c.Name)})
		}
	}
}

func (c *Cache) schema(g *schemaMaker) object {
	return g.define("cache", func() object {
		known := object{"enum": knownCacheNames()}
		if g.worker {
			return object{"type": "string", "pattern": cacheNamePattern}
		}
		long := g.form(reflect.TypeFor[cacheForm]())
		long["anyOf"] = []object{{"required": []string{"target"}}, {"properties": object{"name": known}}}
		return object{"anyOf": []object{known, long}}
	})
}

func (*cacheForm) refine(_, properties object, _ *schemaMaker) {
	target := properties["target"].(object)
	target["pattern"] = `^/[^:]*$`
	target["not"] = object{"pattern": reservedPattern + `$`}
	delete(target, "allOf")
}

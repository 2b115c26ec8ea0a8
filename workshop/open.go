package workshop

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/image/reference"
)

// openForm is `open:` as it is written: what a project that extends the file may have
// beyond it.
type openForm struct {
	Source    diag.Source
	Network   *openNetworkForm  `key:"network" example:"write network: {allow: [preset: npm]}" doc:"What a project may reach besides."`
	Mounts    *[]openMount      `key:"mounts" example:"write mounts: [./docs, \"./out:rw\"]" doc:"What a project may mount besides: directories of the project, and what is below them."`
	Images    *[]Value[string]  `key:"images" validate:"text,oneline" literal:"What a project may run must be visible in the file." example:"write images: [\"ghcr.io/acme/*\"]" doc:"Images that a project may have in place of this one: repositories, with * for a part of their path, and those below."`
	Build     *Value[bool]      `key:"build" literal:"What a project may run must be visible in the file." example:"write build: true" doc:"A project may build its image."`
	Ports     *Value[bool]      `key:"ports" literal:"What a project may publish must be visible in the file." example:"write ports: true" doc:"A project may publish ports."`
	Workers   *Value[bool]      `key:"workers" literal:"Who works must be visible in the file." example:"write workers: true" doc:"A project may have workers of its own, and import some."`
	Approvals *Value[bool]      `key:"approvals" literal:"What needs a person's yes must be visible in the file." example:"write approvals: true" doc:"A project may add rules of approvals after these, and a default."`
	MCP       *Value[bool]      `key:"mcp" literal:"What a project may run must be visible in the file." example:"write mcp: true" doc:"A project may add MCP servers."`
	Scratch   *Value[Size]      `key:"scratch" validate:"min=4096" example:"write scratch: 1G" doc:"Upper limit of scratch."`
	Tmp       *Value[Size]      `key:"tmp" validate:"min=4096" example:"write tmp: 1G" doc:"Upper limit of tmp."`
	Shm       *Value[Size]      `key:"shm" validate:"min=4096" example:"write shm: 1G" doc:"Upper limit of shm."`
	Home      *Value[Size]      `key:"home" validate:"min=4096" example:"write home: 1G" doc:"Upper limit of home."`
	Resources *partialResources `key:"resources" example:"write resources: {memory: 8G, cpu: 4}" doc:"Upper limits of each worker."`
}

func (*openForm) title() string { return "open" }

// openNetworkForm is `network:` of open.
type openNetworkForm struct {
	Source diag.Source
	Allow  *[]allowLine `key:"allow" required:"true" example:"write allow: [{preset: npm}]" doc:"Hosts, ranges of addresses and presets, as in a container."`
}

func (*openNetworkForm) title() string { return "network of open" }

// openMount is a directory of the project that may be mounted.
type openMount struct {
	Dir       Value[string]
	ReadWrite bool
	at        diag.Source
}

// openMountForm is the long form of an openMount.
type openMountForm struct {
	Source diag.Source
	Dir    *Value[string] `key:"source" required:"true" validate:"text,oneline" example:"write source: ./docs" doc:"Directory of the project, relative to its file."`
	Mode   *Value[string] `key:"mode" validate:"oneof=ro rw" literal:"What a project may mount must be visible in the file." example:"write mode: rw" doc:"Read-only, or writable."`
}

func (*openMountForm) title() string { return "a mount of open" }

func (m *openMount) decode(d *decoder, n *node, f *field) bool {
	m.at = diag.Source{Range: n.rng}
	switch n.kind {
	case scalarNode:
		if !m.Dir.decode(d, n, f) {
			return false
		}
		if dir, writable := strings.CutSuffix(m.Dir.V, ":rw"); writable {
			m.Dir.V, m.ReadWrite = dir, true
		}
		m.Dir.V = strings.TrimSuffix(m.Dir.V, ":ro")
	case mapNode:
		var form openMountForm
		if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
			return false
		}
		m.Dir, m.ReadWrite = *form.Dir, form.Mode != nil && form.Mode.V == "rw"
	default:
		d.wrongType(n, f, "a directory, or a mapping {source, mode}")
		return false
	}
	if problem := relativeProblem(strings.TrimPrefix(strings.TrimSuffix(m.Dir.V, "/"), "./")); problem != "" && m.Dir.V != "." && m.Dir.V != "./" {
		d.fail(m.Dir.Source.Range, "bad-path", fmt.Sprintf("the directory %q %s", clip(m.Dir.V), problem), "write ./DIRECTORY, or ./DIRECTORY:rw")
		return false
	}
	return true
}

func (*openMount) schema(g *schemaMaker) object {
	return g.define("open-mount", func() object {
		return object{"anyOf": []object{{"type": "string", "pattern": `^\.?[^:~]*(:(ro|rw))?$`}, g.form(reflect.TypeFor[openMountForm]())}}
	})
}

// opens reports whether a key that a base has alone is open to its projects.
func (o *openForm) opens(key string) bool {
	if o == nil {
		return false
	}
	is := func(v *Value[bool]) bool { return v != nil && v.V }
	switch key {
	case "container.build":
		return is(o.Build)
	case "container.ports":
		return is(o.Ports)
	case "workshop.workers", "workshop.imports":
		return is(o.Workers)
	case "workshop.approvals":
		return is(o.Approvals)
	case "workshop.mcp":
		return is(o.MCP)
	}
	return false
}

// image reports whether a project may have an image in place of the base's.
func (o *openForm) image(name string) bool {
	if o == nil || o.Images == nil {
		return false
	}
	ref, err := reference.Parse(name)
	repository, _, _ := strings.Cut(ref.Name, "@")
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	return slices.ContainsFunc(*o.Images, func(v Value[string]) bool {
		return v.V == name || err == nil && ref.Kind == reference.Registry && module.MatchPrefixPatterns(fullName(v.V), repository)
	})
}

// anyImage reports whether a file without an image says nothing of which one a project may
// have, or build.
func (o *openForm) anyImage(key string) bool {
	return o == nil || o.Images == nil && (key != "container.build" || o.Build == nil)
}

// fullName is a pattern of repositories with its registry, which may be left out for
// those of Docker Hub.
func fullName(pattern string) string {
	first, _, deeper := strings.Cut(pattern, "/")
	switch {
	case !deeper && first != "localhost":
		return "docker.io/library/" + pattern
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		return "docker.io/" + pattern
	}
	return pattern
}

// upTo is what a project that extends a container may have at most.
func (o *openForm) upTo(c Container) Container {
	if o == nil {
		return c
	}
	if n := o.Network; n != nil && n.Allow != nil {
		c.Network.Mode.V = max(c.Network.Mode.V, firewall.Restricted)
		c.Network.Allow = slices.Clone(c.Network.Allow)
		for _, line := range *n.Allow {
			c.Network.Allow = append(c.Network.Allow, line...)
		}
	}
	if o.Mounts != nil {
		c.Mounts = slices.Clone(c.Mounts)
		for _, m := range *o.Mounts {
			c.Mounts = append(c.Mounts, Mount{Source: m.Dir, ReadWrite: m.ReadWrite, At: m.at})
		}
	}
	raise(&c.Scratch, o.Scratch)
	raise(&c.Tmp, o.Tmp)
	raise(&c.Shm, o.Shm)
	raise(&c.Home, o.Home)
	if r := o.Resources; r != nil {
		raise(&c.Resources.Memory, r.Memory)
		raise(&c.Resources.CPU, r.CPU)
		raise(&c.Resources.PIDs, r.PIDs)
		raise(&c.Resources.Timeout, r.Timeout)
	}
	return c
}

// lines are what is opened, each by itself: what is not there is closed.
func (o *openForm) lines() (out []Opened) {
	if o == nil {
		return nil
	}
	add := func(text string, at diag.Range) { out = append(out, Opened{text, at}) }
	if n := o.Network; n != nil && n.Allow != nil {
		for _, line := range *n.Allow {
			for _, r := range line {
				add("net "+ruleText(r), r.Source.Range)
			}
		}
	}
	for _, m := range list(o.Mounts) {
		mode := "ro"
		if m.ReadWrite {
			mode = "rw"
		}
		add("mount "+path.Join("./", m.Dir.V)+" "+mode, m.at.Range)
	}
	for _, v := range list(o.Images) {
		add("image "+v.V, v.Source.Range)
	}
	flag := func(name string, v *Value[bool]) {
		if v != nil && v.V {
			add(name, v.Source.Range)
		}
	}
	flag("build", o.Build)
	flag("ports", o.Ports)
	flag("workers", o.Workers)
	flag("approvals", o.Approvals)
	flag("mcp", o.MCP)
	most := o.upTo(Container{})
	for _, l := range most.limits() {
		if l.most > 0 {
			add(strings.TrimPrefix(l.key, "resources.")+" up to "+l.text, l.at.Range)
		}
	}
	return out
}

func raise[T cmp.Ordered](limit, to *Value[T]) {
	if to != nil && to.V > limit.V {
		*limit = *to
	}
}

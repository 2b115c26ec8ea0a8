package workshop

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop/worker"
)

// workerEntry is one item of `workers:` as it is written: a name, or a mapping
// with a name.
type workerEntry struct {
	Name Value[string]
	// File is the `file:` key, relative to workshop.yaml; V is empty when the
	// worker is to be found by name.
	File Value[string]
	// Inline is what the item itself says of what the worker does; nil when that is in
	// a file.
	Inline *worker.Inline
	// Container is the `container:` key; nil when it is absent.
	Container *partialContainer
	// Source is the whole item.
	Source diag.Source
}

// partialContainer is a `container:` as it is written: every key may be
// absent (nil), and a key that is present keeps its place. Everything
// in it is already well formed; a key whose value was refused is in
// Refused and is absent or incomplete.
type partialContainer struct {
	Source diag.Source // the mapping

	Image     *Value[string]           `key:"image" validate:"imageref" example:"write image: NAME:TAG, or image: host" doc:"Image reference, or host for the programs of this machine, read-only. With the namespace engine also oci:DIR[:TAG] or docker-archive:FILE[:NAME], relative to this file."`
	Build     *Build                   `key:"build" example:"write build: {context: ./docker/worker}" doc:"Builds the image from the repository; excludes image."`
	Pull      *Value[PullPolicy]       `key:"pull" validate:"oneof=missing never always" example:"write pull: always" default:"missing" doc:"When the image is pulled."`
	User      *Value[string]           `key:"user" validate:"uidgid" number:"true" example:"write user: \"1000:1000\"" doc:"uid or uid:gid; default: the caller's. Never root, and neither 65531 nor 65532, which the guard and the outlet have."`
	Workdir   *Value[string]           `key:"workdir" validate:"abspath,oneline" example:"write workdir: /workspace" default:"/workspace" doc:"Working directory in the container; created if it is missing. Paths through magic links such as /proc/self/fd/3 are refused."`
	Network   *partialNetwork          `key:"network" example:"write network: restricted" default:"none" doc:"What the worker may reach."`
	Mounts    *[]Mount                 `key:"mounts" example:"write mounts: [./src:/workspace/src:ro]" doc:"Directories and files of the project in the container."`
	Scratch   *Value[Size]             `key:"scratch" validate:"min=4096" example:"write scratch: 256M" default:"256M" doc:"Size of the tmpfs at /scratch."`
	Tmp       *Value[Size]             `key:"tmp" validate:"min=4096" example:"write tmp: 512M" default:"512M" doc:"Size of the tmpfs at /tmp."`
	Shm       *Value[Size]             `key:"shm" validate:"min=4096" example:"write shm: 64M" default:"64M" doc:"Size of the tmpfs at /dev/shm."`
	Home      *Value[Size]             `key:"home" validate:"min=4096" example:"write home: 256M" default:"256M" doc:"Size of the tmpfs at /home/worker."`
	Resources *partialResources        `key:"resources" example:"write resources: {memory: 2G, cpu: 1}" doc:"Limits of each worker."`
	Env       map[string]Value[string] `key:"env" names:"envname" number:"true" example:"write env: {LANG: C.UTF-8, EDITOR: \"${EDITOR:-vi}\"}" doc:"Environment variables; not for tokens, which are secrets."`
	GitAuthor *Value[string]           `key:"git_author" validate:"oneof=none host" literal:"What enters from this machine must be visible in the file." example:"write git_author: host" doc:"With host, commits of the worker have the name and address of your own git configuration (user.name, user.email), which it gets as variables. Those of env win."`
	Secrets   *[]Secret                `key:"secrets" example:"write secrets: [{name: github_token, env: GITHUB_TOKEN}]" doc:"Files at /run/secrets/NAME; a worker gets those that its own container names."`
	Caches    *[]Cache                 `key:"caches" example:"write caches: [npm, go]" doc:"Directories of one worker that outlive it; a worker gets those that its own container names."`
	Ports     *[]Port                  `key:"ports" example:"write ports: [\"8080:8080\"]" doc:"Ports of the worker that are published on the host."`
	Runtime   *Value[string]           `key:"runtime" validate:"runtime" example:"write runtime: crun" doc:"OCI runtime of the engine; default: the engine's."`
	Kernel    *Value[Kernel]           `key:"kernel" validate:"oneof=host sandboxed vm" literal:"What separates a worker from this machine must be visible in the file." example:"write kernel: sandboxed" default:"host" doc:"What programs run on: this machine's kernel, one in user space (sandboxed), or a virtual machine's (vm). A worker may ask for more, never for less."`

	// Keys returns the place of every key that is in the mapping, by its
	// path below container: "mounts", "network", "network.mode",
	// "resources.memory".
	Keys map[string]diag.Range
	// Refused holds the paths whose value has an error already: checks that
	// would only repeat it are left out for these.
	Refused map[string]bool
}

// partialNetwork is a `network:` as it is written. The short form sets Mode
// alone.
type partialNetwork struct {
	Source diag.Source
	Mode   *Value[firewall.Mode]
	// Allow and Deny are nil when absent; an empty list allows nothing.
	// Presets are expanded.
	Allow, Deny *[]firewall.Rule
	// Agents is nil when absent, which takes the workshop's away as an empty list does.
	Agents *[]Agent
	DNS    *[]Upstream
	Proxy  *Upstream
	// ProxyCredential is a name.
	ProxyCredential *Value[string]
	OwnRoom         *Value[bool] // `room: own`
}

// partialResources is a `resources:` as it is written.
type partialResources struct {
	Source  diag.Source
	Memory  *Value[Size]          `key:"memory" validate:"min=6291456" example:"write memory: 2G" default:"2G" doc:"Memory; there is no swap beyond it."`
	CPU     *Value[float64]       `key:"cpu" validate:"min=0.01,max=1024" example:"write cpu: 1" default:"1" doc:"CPU cores."`
	PIDs    *Value[int64]         `key:"pids" validate:"min=16,max=4194304" example:"write pids: 256" default:"256" doc:"Processes and threads."`
	Timeout *Value[time.Duration] `key:"timeout" validate:"min=1000000000,max=86400000000000" example:"write timeout: 10m" default:"10m" doc:"Time limit of one tool call."`
}

func (*partialContainer) title() string { return "container" }
func (*partialResources) title() string { return "resources" }

// keepsParts: what could be read of these is kept although some of it was
// refused, so that the rest is checked too.
func (*partialContainer) keepsParts() {}
func (*partialNetwork) keepsParts()   {}
func (*partialResources) keepsParts() {}

type partsKeeper interface{ keepsParts() }

func (c *partialContainer) decode(d *decoder, n *node, f *field) bool {
	c.Source = diag.Source{Range: n.rng}
	c.Keys, c.Refused = map[string]diag.Range{}, map[string]bool{}
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping")
		return false
	}
	outer := d.scope
	d.scope = &scope{keys: c.Keys, refused: c.Refused}
	defer func() { d.scope = outer }()
	before := d.errors
	d.mapping(n, reflect.ValueOf(c).Elem())
	c.together(d)
	return d.errors == before
}

// grantedContainer is a container in the words of a worker: what an import is granted, or
// needs.
type grantedContainer struct{ partialContainer }

func (c *grantedContainer) decode(d *decoder, n *node, f *field) bool {
	outer := d.worker
	d.worker = true
	defer func() { d.worker = outer }()
	if n.kind == mapNode && len(n.pairs) == 0 {
		c.Source = diag.Source{Range: n.rng}
		return true
	}
	good := c.partialContainer.decode(d, n, f)
	if at, has := c.Keys["ports"]; has {
		d.fail(at, "grant-ports", "imported workers publish no ports", "remove it, or write the worker here")
		return false
	}
	return good
}

// together checks the rules about several keys of one container.
func (c *partialContainer) together(d *decoder) {
	image, hasImage := c.Keys["image"]
	build, hasBuild := c.Keys["build"]
	if hasImage && hasBuild {
		d.refuse("build", diag.Diagnostic{
			Severity: diag.Error, Code: "image-and-build", Summary: "image and build exclude each other",
			Hint: "remove one of them", Range: build, Related: []diag.Related{{Message: "image is here", Range: image}},
		})
	}
	if c.Image != nil && c.Image.V == HostImage && c.Image.Source.Template != "" {
		d.refuse("image", diag.Diagnostic{
			Severity: diag.Error, Code: "variable-not-allowed", Summary: "`image: host` can't come from a variable",
			Detail: "It changes how the project is made.", Hint: "write image: host", Range: c.Image.Source.Range,
		})
	}
	if c.Mounts != nil {
		d.checkMounts(*c.Mounts)
	}
	if c.Ports != nil {
		published, targets := map[string]diag.Range{}, map[string]diag.Range{}
		for _, p := range *c.Ports {
			if !p.Auto() && !d.standsIn(p.Published.Source) && !d.standsIn(p.Host.Source) {
				d.once("ports", published, fmt.Sprintf("%s:%d", p.Host.V, p.Published.V), p.At.Range, "published port")
			}
			d.once("ports", targets, fmt.Sprint(p.Target.V), p.At.Range, "port of the worker")
		}
	}
	if c.Caches != nil {
		var mounts []Mount
		if c.Mounts != nil {
			mounts = *c.Mounts
		}
		d.checkCaches(*c.Caches, mounts)
	}
	if c.Secrets != nil {
		seen := map[string]diag.Range{}
		for _, s := range *c.Secrets {
			d.once("secrets", seen, s.Name, s.At.Range, "secret")
		}
	}
}

// has reports whether a key is in the container, well formed or not.
func (c *partialContainer) has(path string) bool {
	_, ok := c.Keys[path]
	return ok
}

// refusedBelow reports whether a key or one inside of it was refused.
func (c *partialContainer) refusedBelow(key string) bool {
	for path := range c.Refused {
		if path == key || strings.HasPrefix(path, key+".") {
			return true
		}
	}
	return false
}

// refuse reports a problem of the key at path below the container.
func (d *decoder) refuse(path string, x diag.Diagnostic) {
	if d.scope != nil {
		d.scope.refused[path] = true
	}
	d.add(x)
}

// once reports a name that is listed twice.
func (d *decoder) once(path string, seen map[string]diag.Range, name string, at diag.Range, what string) {
	if first, again := seen[name]; again {
		d.refuse(path, diag.Diagnostic{
			Severity: diag.Error, Code: "duplicate-" + path[:len(path)-1], Summary: fmt.Sprintf("the %s %s is listed twice", what, clip(name)),
			Hint: "remove one of them, or choose another", Range: at, Related: []diag.Related{{Message: "first here", Range: first}},
		})
		return
	}
	seen[name] = at
}

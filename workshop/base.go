package workshop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// resolve is the workshop without its workers: what the file says over its base, if it
// has one (B47). What it may say is in keyRules.
func (f *shared) resolve(work *effort) *Workshop {
	w := f.workshop(f.form)
	if f.base == nil {
		return w
	}
	b := f.base.resolve(work)
	f.closed()
	if f.form.Isolation == nil {
		w.Isolation = b.Isolation
	} else if b.Isolation.Source.Range.Filename != "" && b.Isolation.V != w.Isolation.V {
		f.fixed("isolation", w.Isolation.Source, b.Isolation.Source)
	}
	w.Approvals.Rules = slices.Concat(b.Approvals.Rules, w.Approvals.Rules)
	if w.Approvals.Default.Source.Range.Filename == "" {
		w.Approvals.Default = b.Approvals.Default
	}
	for _, s := range w.MCP {
		if i := slices.IndexFunc(b.MCP, func(o MCPServer) bool { return o.Name == s.Name }); i >= 0 {
			f.add(diag.Diagnostic{Severity: diag.Error, Code: "base-closed", Range: s.At.Range, Summary: fmt.Sprintf("the base has an MCP server %s", s.Name),
				Hint: "choose another name", Related: []diag.Related{{Message: "the base's", Range: b.MCP[i].At.Range}}})
		}
	}
	w.MCP = slices.Concat(b.MCP, w.MCP)
	sortfunc.Stable(w.MCP, func(a, b MCPServer) int { return strings.Compare(a.Name, b.Name) })
	if f.form.Models == nil {
		w.Models = b.Models
	}
	w.Container, w.most = f.over(b.Container, work)
	return w
}

// mostOf is what a base lets a project reach at most.
type mostOf struct {
	id      string
	network Network
}

// BeyondBase returns the ID of a base that neither allows nor opens what a line of allow
// would have the workshop reach; "" where each does.
func (w *Workshop) BeyondBase(line firewall.Rule) string {
	for _, m := range w.most {
		n := Network{Mode: Value[firewall.Mode]{V: firewall.Restricted}, Allow: []firewall.Rule{line}, Deny: m.network.Deny}
		if len(networkExcess(n, m.network, &effort{left: maxEffort})) > 0 {
			return m.id
		}
	}
	return ""
}

// bases are what the file extends, the nearest first.
func (f *shared) bases() (out []*shared) {
	for b := f.base; b != nil; b = b.base {
		out = append(out, b)
	}
	return out
}

// over is the container of the file over that of its base, and checks that it is within
// that of each base, of which it returns what they let it reach.
func (f *shared) over(b Container, work *effort) (Container, []mostOf) {
	c := f.form.Container
	if c == nil {
		c = &partialContainer{}
	}
	out := effective(b, c, work)
	if c.Source.Range.Filename != "" {
		out.Source = c.Source
	}
	// What enters from the machine is never a base's word.
	out.Secrets = list(c.Secrets)
	if c.GitAuthor == nil {
		out.GitAuthor = Value[string]{}
	}
	if c.Caches == nil {
		out.Caches = b.Caches
	} else {
		out.Caches = overCaches(*c.Caches, b.Caches)
	}
	if c.Ports == nil {
		out.Ports = b.Ports
	}
	out.Network.Deny = b.Network.Deny
	if n := c.Network; n != nil {
		if n.Deny != nil {
			out.Network.Deny = slices.Concat(b.Network.Deny, *n.Deny)
		}
		if n.DNS != nil {
			if out.Network.DNS = *n.DNS; len(b.Network.DNS) > 0 {
				f.fixed("network.dns", n.Source, b.Network.Source)
			}
		}
		if n.Proxy != nil {
			if out.Network.Proxy = *n.Proxy; b.Network.Proxy.V != "" {
				f.fixed("network.proxy", n.Proxy.Source, b.Network.Proxy.Source)
			}
		}
		if n.ProxyCredential != nil {
			if out.Network.ProxyCredential = *n.ProxyCredential; b.Network.ProxyCredential.V != "" {
				f.fixed("network.proxy_credential", n.ProxyCredential.Source, b.Network.ProxyCredential.Source)
			}
		}
	}
	if c.Runtime != nil {
		if out.Runtime = *c.Runtime; b.Runtime.V != "" && b.Runtime.V != c.Runtime.V {
			f.fixed("runtime", c.Runtime.Source, b.Runtime.Source)
		}
	}
	f.checkCaches(out.Caches, out.Mounts)
	c.idle(out.Network, b.Network, f.problems)
	if c.Mounts != nil {
		out.Mounts = *c.Mounts
	}
	var all []mostOf
	for _, base := range slices.Backward(f.bases()) {
		most := base.form.Open.upTo(base.container(work))
		all = append(all, mostOf{base.id, most.Network})
		if c.Mounts != nil {
			out.Mounts = within(out.Mounts, most.Mounts, work)
		}
		found := slices.Concat(networkExcess(out.Network, most.Network, work), roomExcess(out.Network, most.Network),
			mountsExcess(out.Mounts, most.Mounts, work), barer(out.Mounts, most.Mounts, work),
			secretsExcess(out.Secrets, most.Secrets, work), cachesExcess(out.Caches, most.Caches), keptExcess(out.Caches, most.Caches), limitsExcess(&out, &most, work))
		if out.GitAuthor.V == GitAuthorHost && most.GitAuthor.V != GitAuthorHost {
			found = append(found, excess{key: "git_author", at: out.GitAuthor.Source.Range, grant: most.GitAuthor.Source.Range, summary: "`git_author: host` isn't granted by the workshop"})
		}
		for _, x := range decided(found) {
			f.add(x.beyond(base))
		}
	}
	return out, all
}

// overCaches are the caches that a project names, with what it says of them and else what
// its base does.
func overCaches(named, base []Cache) []Cache {
	out := slices.Clone(named)
	for i, c := range named {
		at := slices.IndexFunc(base, func(b Cache) bool { return b.Name == c.Name })
		if at < 0 {
			continue
		}
		if c.Target.Source.Range.Filename == "" {
			out[i].Target = base[at].Target
		}
		if c.PruneAbove.Source.Range.Filename == "" {
			out[i].PruneAbove = base[at].PruneAbove
		}
	}
	return out
}

// container is the effective one of a base, whose problems were reported before.
func (f *shared) container(work *effort) Container {
	quiet := *f
	d := *f.decoder
	d.problems = &problems{}
	quiet.decoder = &d
	return quiet.resolve(work).Container
}

// beyond reports what a project has and its base doesn't grant, with both places.
func (x excess) beyond(base *shared) diag.Diagnostic {
	name := base.id
	words := strings.NewReplacer("the workshop's", "the base's", "the workshop", "the base")
	d := diag.Diagnostic{Severity: diag.Error, Code: "base-widening", Summary: words.Replace(x.summary), Range: x.at,
		Detail: "A project may only narrow what its base " + name + " grants, and have what that opens.",
		Hint:   "leave it out, or ask for it below `open:` of the base"}
	switch s := x.haveOf.Secret; {
	case s != nil:
		d.Hint = fmt.Sprintf("leave it out, or ask for `secrets: [{name: %s, env: …}]` in the container of the base", s.Name)
	case slices.Contains([]string{"caches", "git_author", "kernel", "network.mode", "network.room"}, x.key): // which open doesn't have
		d.Hint = "leave it out, or ask for it in the container of the base"
	}
	grant := x.grant
	if grant.Filename == "" {
		grant = base.src.span(base.form.Source.Range.Start.Byte, base.form.Source.Range.Start.Byte)
	}
	d.Related = []diag.Related{{Message: "the base", Range: grant}}
	return d
}

// closed refuses keys that the file has and its bases have alone, in its container, in those
// of its workers and in what it grants.
func (f *shared) closed() {
	keys := map[string]diag.Range{}
	for _, p := range f.root.pairs {
		for _, q := range p.value.pairs {
			keys["workshop."+q.key.text] = q.key.rng
		}
	}
	own, narrowing := f.ofBase()
	if len(own) == 0 { // the others have errors of their own
		delete(keys, "workshop.workers")
	}
	f.closedKeys(keys, nil)
	for _, c := range f.containers() {
		keys := map[string]diag.Range{}
		if slices.Contains(narrowing, c) {
			continue
		}
		for key, at := range c.Keys {
			keys["container."+key] = at
		}
		f.closedKeys(keys, c.Image)
	}
}

func (f *shared) closedKeys(keys map[string]diag.Range, image *Value[string]) {
	for _, rule := range keyRules {
		at, has := keys[rule.key]
		if !has || rule.base != closedKey {
			continue
		}
		for _, b := range f.bases() {
			c := b.form.Container
			switch {
			case rule.key == "container.image" && (image == nil || b.form.Open.image(image.V)):
				continue
			case (rule.key == "container.image" || rule.key == "container.build") && b.form.Open.anyImage(rule.key) && !slices.ContainsFunc(append(b.bases(), b), (*shared).hasImage):
				continue // somebody must say which
			case b.form.Open.opens(rule.key):
				continue
			}
			x := diag.Diagnostic{Severity: diag.Error, Code: "base-closed", Range: at,
				Summary: fmt.Sprintf("%s is closed by the base %s", rule.key[strings.IndexByte(rule.key, '.')+1:], b.id),
				Hint:    "leave it out, or ask for it below `open:` of the base"}
			x.Related = []diag.Related{{Message: "the base", Range: startOf(b.form.Source.Range)}}
			if rule.key == "workshop.workers" {
				x.Hint = f.meantOfBase() + x.Hint
			}
			if c != nil && c.Keys[strings.TrimPrefix(rule.key, "container.")].Filename != "" {
				x.Related[0].Range = c.Keys[strings.TrimPrefix(rule.key, "container.")]
			}
			f.add(x)
			break
		}
	}
}

// meantOfBase asks whether the name of a worker is a slip in that of a base's.
func (f *shared) meantOfBase() string {
	for _, e := range f.entries {
		if near := nearest(e.Name.V, f.workers.ofBases); near != "" && near != e.Name.V {
			return fmt.Sprintf("did you mean %s, of the base, by %s? Else ", near, e.Name.V)
		}
	}
	return ""
}

func (f *shared) hasImage() bool {
	c := f.form.Container
	return c != nil && (c.Image != nil || c.Build != nil)
}

// fixed reports a value of the file in the place of the base's.
func (f *shared) fixed(key string, at, base diag.Source) {
	f.add(diag.Diagnostic{Severity: diag.Error, Code: "base-closed", Range: at.Range, Summary: key + " is set by the base", Hint: "leave it out",
		Related: []diag.Related{{Message: "the base's", Range: base.Range}}})
}

// capped is a container of a base or an imported file with the limits of the project, where
// these are lower: a project may lower them for all. What is more than the file's own limits
// stays, and is refused.
func capped(c *partialContainer, most, own *Container) *partialContainer {
	if c == nil {
		return nil
	}
	out := *c
	lower(&out.Scratch, most.Scratch, own.Scratch)
	lower(&out.Tmp, most.Tmp, own.Tmp)
	lower(&out.Shm, most.Shm, own.Shm)
	lower(&out.Home, most.Home, own.Home)
	if c.Resources != nil {
		r := *c.Resources
		out.Resources = &r
		lower(&r.Memory, most.Resources.Memory, own.Resources.Memory)
		lower(&r.CPU, most.Resources.CPU, own.Resources.CPU)
		lower(&r.PIDs, most.Resources.PIDs, own.Resources.PIDs)
		lower(&r.Timeout, most.Resources.Timeout, own.Resources.Timeout)
	}
	return &out
}

func lower[T cmp.Ordered](v **Value[T], most, own Value[T]) {
	if *v != nil && (*v).V > most.V && (*v).V <= own.V {
		*v = &most
	}
}

// alone is the container of a base or an imported file by itself.
func (f *shared) alone(work *effort) *Container {
	if f.as == baseFile {
		c := f.container(work)
		return &c
	}
	c := defaultContainer()
	if n := f.form.Needs; n != nil {
		setScalars(&c, &n.partialContainer)
	}
	return &c
}

// asBase refuses what a base can't have, beyond its keys.
func (f *shared) asBase() {
	if f.form.Needs != nil {
		f.failDetail(startOf(f.place(f.root, "needs")), "base-key", "a file with needs can't be a base: it is to be imported", "What its workers get is said by who imports it.", "write it below imports instead of extends")
	}
	for _, c := range f.containers() {
		if c.Build != nil {
			f.failDetail(c.Build.Source.Range, "base-key", "a base can't build its image", "Its files are read, and never written where a build could read them.", "publish the image, and write image: NAME:TAG")
		}
		if c.Image == nil {
			continue
		}
		switch ref, _ := reference.Parse(c.Image.V); {
		case ref.OnMachine():
			f.fail(c.Image.Source.Range, "base-key", fmt.Sprintf("the image %s of a base is a file, which a project doesn't have", clip(c.Image.V)), "publish the image, and write image: NAME:TAG")
		case ref.Kind == reference.Host:
			f.fail(c.Image.Source.Range, "base-key", "a base can't have the programs of this machine as its image", "leave image out and have an `open:`; a project that means it writes image: host")
		}
	}
}

// containers are all that the file has: its own, those of its workers, and what it grants.
func (f *shared) containers() (out []*partialContainer) {
	if f.form.Container != nil {
		out = append(out, f.form.Container)
	}
	for _, e := range f.entries {
		if e.Container != nil {
			out = append(out, e.Container)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.form.Grant)) {
		g := f.form.Grant[name]
		out = append(out, &g.partialContainer)
	}
	return out
}

// someImage refuses a project of which nobody says what it runs in. A file that opens
// something may leave that to its projects.
func (f *shared) someImage(c *Container) {
	if f.base != nil && f.form.Open == nil && c.Image.V == "" && c.Build == nil {
		f.fail(f.form.Extends.From.Source.Range, "missing-key", "neither the file nor its base "+f.base.id+" has an image", "write container: {image: NAME:TAG}")
	}
}

package workshop

import (
	"maps"
	"slices"

	"github.com/llmdo/workshop/firewall"
)

// effective puts a worker's `container:` over its workshop's, by the table
// "Narrowing" of the spec:
//
//	replaces     network mode and allow, mounts, image or build, pull, user, workdir, limits
//	adds         network deny, env (the worker's value wins)
//	names        secrets, caches: only those that the worker names; none if it names none;
//	             agents likewise, of a worker that has a network of its own
//	is its own   ports; the workshop's go to the only worker, see assignPorts
//	replaces     git_author, which may only take it away
//	stays        network dns and proxy, runtime
//
// It does not check; narrow does. base is not changed.
func effective(base Container, c *partialContainer, work *effort) Container {
	out := base
	if c.Image != nil {
		out.Image, out.Build = *c.Image, nil
	}
	if c.Build != nil {
		out.Image, out.Build = Value[string]{}, c.Build
	}
	setScalars(&out, c)
	if len(c.Env) > 0 {
		out.Env = maps.Clone(base.Env)
		if out.Env == nil {
			out.Env = map[string]Value[string]{}
		}
		maps.Copy(out.Env, c.Env)
	}
	out.Network = effectiveNetwork(base.Network, c.Network, work)
	if c.Mounts != nil {
		out.Mounts = within(*c.Mounts, base.Mounts, work)
	}
	out.Secrets = namedSecrets(base.Secrets, c.Secrets)
	out.Caches = namedCaches(base.Caches, c.Caches)
	out.Ports = nil
	if c.Ports != nil {
		out.Ports = *c.Ports
	}
	return out
}

func set[T any](to *Value[T], from *Value[T]) {
	if from != nil {
		*to = *from
	}
}

func effectiveNetwork(base Network, n *partialNetwork, work *effort) Network {
	out := base
	out.Agents = effectiveAgents(base, n)
	if n != nil {
		out.Source = n.Source
		set(&out.Mode, n.Mode)
		set(&out.OwnRoom, n.OwnRoom)
		if n.Allow != nil {
			out.Allow = *n.Allow
		}
		if n.Deny != nil {
			const each = 1000 // a copied rule costs memory, a comparison none
			if work.spend(each * (len(base.Deny) + len(*n.Deny))) {
				out.Deny = slices.Concat(base.Deny, *n.Deny)
			}
		}
	}
	if out.Mode.V == firewall.None {
		// Nothing is reached, so no rule has a meaning.
		out.Allow, out.Deny = nil, nil
	}
	return out
}

// namedSecrets returns the workshop's secrets that a worker names, in the
// worker's order and with the worker's places.
func namedSecrets(base []Secret, named *[]Secret) []Secret {
	if named == nil {
		return nil
	}
	var out []Secret
	for _, s := range *named {
		for _, b := range base {
			if b.Name == s.Name {
				b.At = s.At
				out = append(out, b)
			}
		}
	}
	return out
}

package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// Cache is a volume that belongs to one worker and outlives it.
type Cache struct {
	Worker, Name string
	Target       string
	// Variables are the environment variables that the compile set for it.
	Variables []string
	// User is the "uid:gid" of its worker, Digest identifies what the worker is
	// granted; both empty before [WithFacts].
	User, Digest string
}

// LabelCache is on the volume of a cache, with "worker/name".
const LabelCache = "dev.llmdo.workshop.cache"

// cacheFlag is the gate's argument that has the size above which it empties a cache,
// and the cache's path.
const cacheFlag = "--cache"

// cacheVolume is the key of a cache's volume: a cache's name has no dot.
func cacheVolume(worker, name string) string { return "cache-" + worker + "." + name }

// caches adds the caches that a worker names. Its volumes hold what the worker wrote,
// so no other worker ever has one (B3).
func (c *compiler) caches(s *types.ServiceConfig, k *workshop.Container) {
	for i := range k.Caches {
		x := &k.Caches[i]
		key := cacheVolume(s.Name, x.Name)
		v := volume(key, x.Target.V)
		v.ReadOnly = false
		s.Volumes = append(s.Volumes, v)
		c.out.Project.Volumes[key] = types.VolumeConfig{}
		c.origin(s.Name, "volumes."+x.Target.V, x.At)
		cache := Cache{Worker: s.Name, Name: x.Name, Target: x.Target.V}
		values := x.Variables()
		for _, name := range sortedKeys(values) {
			if _, given := k.Env[name]; !given {
				s.Environment[name] = ptr(values[name])
				cache.Variables = append(cache.Variables, name)
			}
		}
		c.out.Caches[key] = cache
	}
}

// cacheArgs tell the gate which caches to look at before the worker is ready.
func cacheArgs(k *workshop.Container) (args []string) {
	for i := range k.Caches {
		args = append(args, cacheFlag, strconv.FormatInt(int64(k.Caches[i].PruneAbove.V), 10)+":"+k.Caches[i].Target.V)
	}
	return args
}

// caches names the volume of each cache by what its worker is granted: another grant
// starts a fresh one, so that a worker never trusts what a narrower one wrote, and
// never gets what a wider one left.
func (m *machine) caches(out *Compiled) {
	out.Caches = maps.Clone(m.c.Caches)
	for key, x := range out.Caches {
		x.User = userOf(m.c.Project.Services[x.Worker].User, m.f)
		x.Digest = m.grantDigest(&x)
		out.Caches[key] = x
		v := out.Project.Volumes[key]
		v.Name = out.Project.Name + "_" + key + "-" + x.Digest
		out.Project.Volumes[key] = v
	}
}

// grantDigest identifies what the worker of a cache can reach: the directory of the
// project, its user, network, mounts, the names of its secrets and of variables that
// take values of the host, and its ports. Limits, tools and the image are left out:
// they give a program in the worker nothing to read or to reach.
func (m *machine) grantDigest(x *Cache) string {
	h := sha256.New()
	line := func(words ...string) {
		for _, w := range words {
			h.Write([]byte(strconv.Quote(w) + " "))
		}
		h.Write([]byte("\n"))
	}
	sorted := func(kind string, items []string) {
		slices.Sort(items)
		line(append([]string{kind}, slices.Compact(items)...)...)
	}
	line("cache", "1", m.f.ProjectDir, x.Worker, x.Name, x.Target, x.User)
	w := m.c.definition(x.Worker)
	if w == nil {
		return hex.EncodeToString(h.Sum(nil)[:8])
	}
	k := &w.Container
	line("network", k.Network.Mode.V.String(), strconv.FormatBool(k.Network.OwnRoom.V), k.Runtime.V)
	sorted("allow", ruleTexts(k.Network.Allow))
	sorted("deny", ruleTexts(k.Network.Deny))
	var mounts, secrets, variables, ports []string
	for i := range k.Mounts {
		n := &k.Mounts[i]
		source := m.f.Sources[n.Source.V].Real
		if source == "" {
			source = m.f.absolute(n.Source.V)
		}
		mounts = append(mounts, strings.Join([]string{source, n.Target.V, flags(n.ReadWrite, n.Copy, n.GitWritable, n.AllowSockets), strings.Join(n.Exclude, "\x00")}, "\x00"))
	}
	sorted("mounts", mounts)
	for i := range k.Secrets {
		secrets = append(secrets, k.Secrets[i].Name)
	}
	sorted("secrets", secrets)
	for name, v := range k.Env {
		if v.Source.Template != "" {
			variables = append(variables, name)
		}
	}
	if k.GitAuthor.V == workshop.GitAuthorHost {
		variables = append(variables, "GIT_AUTHOR_NAME") // and the other three
	}
	sorted("variables", variables)
	for i := range k.Ports {
		p := &k.Ports[i]
		ports = append(ports, p.Host.V+" "+strconv.Itoa(int(p.Target.V))+" "+flags(p.ExposeBeyondHost))
	}
	sorted("ports", ports)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ruleTexts are rules without where they were written, with the values of their
// variables.
func ruleTexts(rules []firewall.Rule) []string {
	out := make([]string, len(rules))
	for i, r := range rules {
		var ports []string
		for _, p := range firewall.NormalizePorts(r.Ports) {
			ports = append(ports, strconv.Itoa(int(p.First))+"-"+strconv.Itoa(int(p.Last)))
		}
		out[i] = strings.Join([]string{r.Meant(), strings.Join(ports, ","), flags(r.Private, r.AnyTenant, r.ECH), r.Upload.String()}, " ")
		if !r.Endpoint.IsZero() { // others' caches stay as they are named
			out[i] += " " + r.Endpoint.String()
		}
	}
	return out
}

func flags(set ...bool) string {
	out := make([]byte, len(set))
	for i, b := range set {
		out[i] = map[bool]byte{false: '-', true: '+'}[b]
	}
	return string(out)
}

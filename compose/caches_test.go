package compose

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// cacheNames are the names of the volumes of caches, by key.
func cacheNames(c *Compiled) map[string]string {
	names := map[string]string{}
	for key := range c.Caches {
		names[key] = c.Project.Volumes[key].Name
	}
	return names
}

// withCaches is a workshop of two workers, of which the first has two caches.
func withCaches(t testing.TB) *workshop.Workshop {
	w := sample(t, 2)
	w.Workers[0].Container.Caches = []workshop.Cache{
		{Name: "npm", Target: val("/caches/npm"), PruneAbove: val(workshop.Size(1 << 30)), At: at(33)},
		{Name: "models", Target: val("/models"), PruneAbove: val(workshop.Size(5 << 20)), At: at(34)},
	}
	w.Workers[0].Container.Secrets = []workshop.Secret{{Name: "token", Env: "TOKEN", At: at(32)}}
	return w
}

func TestCaches(t *testing.T) {
	w := withCaches(t)
	c := compiled(t, w)
	f := sampleFacts()
	f.SecretFiles = map[string]string{"token": "/run/user/1000/workshop/x/token"}
	ready := withFacts(t, c, f)
	for _, v := range slices.Concat(Check(c), Check(ready)) {
		t.Error(v)
	}
	want := map[string]Cache{
		"cache-worker-0.npm":    {Worker: "worker-0", Name: "npm", Target: "/caches/npm", Variables: []string{"npm_config_cache"}},
		"cache-worker-0.models": {Worker: "worker-0", Name: "models", Target: "/models"},
	}
	if diff := cmp.Diff(want, c.Caches); diff != "" {
		t.Error(diff)
	}
	s := ready.Project.Services["worker-0"]
	if v := s.Environment["npm_config_cache"]; v == nil || *v != "/caches/npm" {
		t.Errorf("npm_config_cache = %v", v)
	}
	if at := slices.Index(s.Entrypoint, cacheFlag); at < 0 || s.Entrypoint[at+1] != "1073741824:/caches/npm" || s.Entrypoint[at+3] != "5242880:/models" {
		t.Errorf("entrypoint %q", []string(s.Entrypoint))
	}
	if _, has := ready.Project.Services["worker-1"].Environment["npm_config_cache"]; has {
		t.Error("a worker without the cache has its variable")
	}
	if labels := ready.Project.Volumes["cache-worker-0.npm"].Labels; labels[LabelCache] != "worker-0/npm" || labels[LabelDirectory] != "/work/project" {
		t.Errorf("labels %v", labels)
	}
	if u := ready.Caches["cache-worker-0.npm"].User; u != "1000:1000" {
		t.Errorf("user %q", u)
	}
	// A variable of the file wins, and stays when there is no cache.
	w.Workers[0].Container.Env = map[string]workshop.Value[string]{"npm_config_cache": val("/elsewhere")}
	c = compiled(t, w)
	if v := c.Project.Services["worker-0"].Environment["npm_config_cache"]; *v != "/elsewhere" || len(c.Caches["cache-worker-0.npm"].Variables) > 0 {
		t.Errorf("%q, %v", *v, c.Caches)
	}
}

// Bundler keeps gems in its cache only if it is told to, and Maven is told by its Java.
func TestCacheVariables(t *testing.T) {
	w := sample(t, 1)
	w.Workers[0].Container.Caches = []workshop.Cache{
		{Name: "bundler", Target: val("/caches/bundler"), PruneAbove: val(workshop.Size(1 << 30)), At: at(33)},
		{Name: "maven", Target: val("/m2"), PruneAbove: val(workshop.Size(1 << 30)), At: at(34)},
		{Name: "yarn", Target: val("/caches/yarn"), PruneAbove: val(workshop.Size(1 << 30)), At: at(35)},
	}
	w.Workers[0].Container.Env = map[string]workshop.Value[string]{"YARN_CACHE_FOLDER": val("/workspace/.yarn/cache")}
	env := compiled(t, w).Project.Services["worker-0"].Environment
	for name, want := range map[string]string{
		"BUNDLE_USER_CACHE": "/caches/bundler", "BUNDLE_GLOBAL_GEM_CACHE": "true", "MAVEN_OPTS": "-Dmaven.repo.local=/m2",
		"YARN_CACHE_FOLDER": "/workspace/.yarn/cache", "YARN_GLOBAL_FOLDER": "/caches/yarn/berry",
	} {
		if got := env[name]; got == nil || *got != want {
			t.Errorf("%s: got %v, want %q", name, got, want)
		}
	}
}

// A widening starts a fresh cache, and what changes nothing of a grant keeps it (B3).
func TestCacheIsKeyedByGrants(t *testing.T) {
	host, err := firewall.ParseHostPattern("other.example.org")
	if err != nil {
		t.Fatal(err)
	}
	rule := firewall.Rule{Host: host, Ports: firewall.DefaultAllowPorts()}
	facts := func() Facts {
		f := sampleFacts()
		f.SecretFiles = map[string]string{"token": "/x/token", "more": "/x/more"}
		f.Sources = maps.Clone(f.Sources)
		f.Sources["./docs"] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/docs", UID: 1000, GID: 1000, Mode: 0o755}
		return f
	}
	name := func(t *testing.T, change func(*workshop.Container, *Facts)) string {
		t.Helper()
		w, f := withCaches(t), facts()
		k := &w.Workers[0].Container
		k.Mounts, k.Network.Allow = slices.Clone(k.Mounts), slices.Clone(k.Network.Allow)
		k.Env = map[string]workshop.Value[string]{"LANG": val("C")}
		change(k, &f)
		return cacheNames(withFacts(t, compiled(t, w), f))["cache-worker-0.npm"]
	}
	same := name(t, func(*workshop.Container, *Facts) {})
	if !strings.HasPrefix(same, "code-review-workshop_cache-worker-0.npm-") || len(same) != len("code-review-workshop_cache-worker-0.npm-")+16 {
		t.Fatalf("the volume is called %q", same)
	}
	variable := func(text string) workshop.Value[string] {
		return workshop.Value[string]{V: text, Source: diag.Source{Template: "${TOKEN}"}}
	}
	for _, tt := range []struct {
		name   string
		fresh  bool
		change func(*workshop.Container, *Facts)
	}{
		{"a host more", true, func(k *workshop.Container, _ *Facts) { k.Network.Allow = append(k.Network.Allow, rule) }},
		{"a host less", true, func(k *workshop.Container, _ *Facts) { k.Network.Allow = nil }},
		{"a port more", true, func(k *workshop.Container, _ *Facts) {
			k.Network.Allow[0].Ports = []firewall.PortRange{{First: 1, Last: 443}}
		}},
		{"private", true, func(k *workshop.Container, _ *Facts) { k.Network.Allow[0].Private = true }},
		{"no upload budget", true, func(k *workshop.Container, _ *Facts) { k.Network.Allow[0].Upload = firewall.Budget{Bytes: 1, Per: 1} }},
		{"a deny", true, func(k *workshop.Container, _ *Facts) { k.Network.Deny = []firewall.Rule{rule} }},
		{"another mode", true, func(k *workshop.Container, _ *Facts) { k.Network.Mode = val(firewall.Open) }},
		{"a room of its own", true, func(k *workshop.Container, _ *Facts) { k.Network.OwnRoom = val(true) }},
		{"a mount more", true, func(k *workshop.Container, _ *Facts) {
			k.Mounts = append(k.Mounts, workshop.Mount{Source: val("./docs"), Target: val("/docs"), At: at(12)})
		}},
		{"a mount that is writable", true, func(k *workshop.Container, _ *Facts) {
			k.Mounts[0].ReadWrite = true
		}},
		{"a mount elsewhere", true, func(k *workshop.Container, _ *Facts) { k.Mounts[0].Target = val("/elsewhere") }},
		{"git", true, func(k *workshop.Container, _ *Facts) { k.Mounts[1].GitWritable = true }},
		{"less excluded", true, func(k *workshop.Container, _ *Facts) { k.Mounts[0].Exclude = []string{".env"} }},
		{"a link leads elsewhere", true, func(_ *workshop.Container, f *Facts) {
			s := f.Sources["./src"]
			s.Real = "/work/project/other"
			f.Sources["./src"] = s
		}},
		{"a secret more", true, func(k *workshop.Container, _ *Facts) {
			k.Secrets = append(k.Secrets, workshop.Secret{Name: "more", Env: "MORE"})
		}},
		{"a variable of the host", true, func(k *workshop.Container, _ *Facts) { k.Env["TOKEN"] = variable("x") }},
		{"the author of the host", true, func(k *workshop.Container, f *Facts) {
			k.GitAuthor = val(workshop.GitAuthorHost)
			f.GitAuthor = GitAuthor{"Ann", "ann@example.org", "Ann", "ann@example.org"}
		}},
		{"a port that is published", true, func(k *workshop.Container, _ *Facts) {
			k.Ports = []workshop.Port{{Host: val("127.0.0.1"), Published: val(uint16(8080)), Target: val(uint16(8080))}}
		}},
		{"another user", true, func(_ *workshop.Container, f *Facts) {
			f.UID = 1001
			f.Sources["./output"] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/output", Mode: 0o777}
		}},
		{"another user by the file", true, func(k *workshop.Container, f *Facts) {
			k.User = val("1002:1000")
			f.Sources["./output"] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/output", Mode: 0o777}
		}},
		{"another directory", true, func(_ *workshop.Container, f *Facts) { f.ProjectDir = "/work" }},
		{"another project", true, func(_ *workshop.Container, f *Facts) { f.Project = "other" }},
		{"another place", true, func(k *workshop.Container, _ *Facts) { k.Caches[0].Target = val("/x") }},

		{"the order of hosts", false, func(k *workshop.Container, _ *Facts) {
			k.Network.Allow = append(slices.Clone(k.Network.Allow), k.Network.Allow...)
		}},
		{"the line of a host", false, func(k *workshop.Container, _ *Facts) { k.Network.Allow[0].Line = "workshop.yaml:99" }},
		{"the order of mounts", false, func(k *workshop.Container, _ *Facts) { slices.Reverse(k.Mounts) }},
		{"a size", false, func(k *workshop.Container, _ *Facts) { k.Caches[0].PruneAbove = val(workshop.Size(2 << 30)) }},
		{"memory", false, func(k *workshop.Container, _ *Facts) { k.Resources.Memory = val(workshop.Size(4 << 30)) }},
		{"another cache", false, func(k *workshop.Container, _ *Facts) { k.Caches = k.Caches[:1] }},
		{"the image", false, func(k *workshop.Container, _ *Facts) { k.Image = val("worker:2") }},
		{"a variable of the file", false, func(k *workshop.Container, _ *Facts) { k.Env["LANG"] = val("de") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := name(t, tt.change); (got != same) != tt.fresh {
				t.Errorf("got %s, before %s", got, same)
			}
		})
	}
	one := name(t, func(k *workshop.Container, _ *Facts) { k.Env["TOKEN"] = variable("x") })
	if two := name(t, func(k *workshop.Container, _ *Facts) { k.Env["TOKEN"] = variable("y") }); two != one {
		t.Error("the value of a variable of the host changes the name")
	}
}

// Two pairs of a worker and a cache never have one volume.
func TestCacheVolumesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, pair := range [][2]string{{"a", "b-c"}, {"a-b", "c"}, {"a", "b_c"}, {"a_b", "c"}, {"a-b-c", "d"}} {
		key := cacheVolume(pair[0], pair[1])
		if other := seen[key]; other != "" {
			t.Errorf("%v and %s have the volume %s", pair, other, key)
		}
		seen[key] = strings.Join(pair[:], " and ")
	}
}

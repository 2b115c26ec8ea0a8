package workshop

import (
	"maps"
	"path"
	"slices"
)

// KnownCache is a cache that a tool finds by its own environment variables.
type KnownCache struct {
	Name string
	// Build: it keeps what was built here; otherwise what was downloaded.
	Build bool
	// variables are set in the worker, unless its env has them: a path below the
	// cache by name.
	variables map[string]string
	// prefix is before the path in the value, for a tool that is told by an option.
	prefix string
	// options are variables without which the tool doesn't use the cache.
	options map[string]string
}

// CacheDir is the directory in a worker in which known caches are.
const CacheDir = "/caches"

// knownCaches by the variables that each tool reads: as its documentation or source
// says, and tried with a tool where the line has versions. A download cache has what
// anybody can fetch again and the tool checks or should check; what was built here has
// a name of its own.
var knownCaches = []KnownCache{
	// https://bun.sh/docs/pm/global-cache; 1.4
	{Name: "bun", variables: at("BUN_INSTALL_CACHE_DIR")},
	// https://bundler.io/man/bundle-config.1.html: without global_gem_cache it has an
	// index alone. 2.3
	{Name: "bundler", variables: at("BUNDLE_USER_CACHE"), options: map[string]string{"BUNDLE_GLOBAL_GEM_CACHE": "true"}},
	// https://doc.rust-lang.org/cargo/guide/cargo-home.html: registry, git, and what is
	// installed. 1.95
	{Name: "cargo", variables: at("CARGO_HOME")},
	// https://ccache.dev/manual/latest.html; 4.7
	{Name: "ccache", Build: true, variables: at("CCACHE_DIR")},
	// https://getcomposer.org/doc/03-cli.md; 2.5
	{Name: "composer", variables: at("COMPOSER_CACHE_DIR")},
	// https://docs.deno.com/runtime/reference/env_variables/; 2.9
	{Name: "deno", variables: at("DENO_DIR")},
	// https://go.dev/ref/mod#environment-variables; 1.26
	{Name: "go", variables: at("GOMODCACHE")},
	// https://pkg.go.dev/cmd/go#hdr-Build_and_test_caching; 1.26
	{Name: "go-build", Build: true, variables: at("GOCACHE")},
	// https://docs.gradle.org/current/userguide/build_environment.html; 4.4
	{Name: "gradle", variables: at("GRADLE_USER_HOME")},
	// https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
	{Name: "huggingface", variables: at("HF_HUB_CACHE")},
	// https://maven.apache.org/configure.html: Maven has no variable for it, its java
	// does. 3.8
	{Name: "maven", variables: at("MAVEN_OPTS"), prefix: "-Dmaven.repo.local="},
	// https://docs.npmjs.com/cli/using-npm/config; 11.19
	{Name: "npm", variables: at("npm_config_cache")},
	// https://learn.microsoft.com/nuget/consume-packages/managing-the-global-packages-and-cache-folders
	{Name: "nuget", variables: at("NUGET_PACKAGES")},
	// https://pip.pypa.io/en/stable/topics/caching/; 23.2
	{Name: "pip", variables: at("PIP_CACHE_DIR")},
	// https://playwright.dev/docs/browsers; 1.65
	{Name: "playwright", variables: at("PLAYWRIGHT_BROWSERS_PATH")},
	// https://pnpm.io/settings#storedir: the first to 10, the second from 11. npm warns of
	// the first. 9.15, 10.34, 12.21
	{Name: "pnpm", variables: at("npm_config_store_dir", "pnpm_config_store_dir")},
	// https://python-poetry.org/docs/configuration/#cache-dir, with its virtual
	// environments. 1.3
	{Name: "poetry", variables: at("POETRY_CACHE_DIR")},
	// https://pre-commit.com/#managing-ci-caches; 3.0
	{Name: "pre-commit", Build: true, variables: at("PRE_COMMIT_HOME")},
	// https://github.com/mozilla/sccache/blob/main/docs/Configuration.md; 0.4
	{Name: "sccache", Build: true, variables: at("SCCACHE_DIR")},
	// https://turborepo.com/docs/reference/system-environment-variables; 2.11
	{Name: "turbo", Build: true, variables: at("TURBO_CACHE_DIR")},
	// https://docs.astral.sh/uv/concepts/cache/
	{Name: "uv", variables: at("UV_CACHE_DIR")},
	// https://classic.yarnpkg.com/en/docs/cli/cache and https://yarnpkg.com/configuration/yarnrc:
	// Yarn 1 reads the first, 4 the second; 2 and 3 both, as 4 without enableGlobalCache.
	// 1.22, 3.8, 4.18
	{Name: "yarn", variables: map[string]string{"YARN_CACHE_FOLDER": "", "YARN_GLOBAL_FOLDER": "berry"}},
}

func at(names ...string) map[string]string {
	out := make(map[string]string, len(names))
	for _, name := range names {
		out[name] = ""
	}
	return out
}

// KnownCaches returns the caches that need a name alone, by name.
func KnownCaches() []KnownCache { return slices.Clone(knownCaches) }

// Variables are the names of the variables that tell the tool, sorted; an option with
// its value.
func (k *KnownCache) Variables() []string {
	out := slices.Collect(maps.Keys(k.variables))
	for name, value := range k.options {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// knownCache returns the known cache of a name, nil if there is none.
func knownCache(name string) *KnownCache {
	for i := range knownCaches {
		if knownCaches[i].Name == name {
			return &knownCaches[i]
		}
	}
	return nil
}

func knownCacheNames() []string {
	names := make([]string, len(knownCaches))
	for i := range knownCaches {
		names[i] = knownCaches[i].Name
	}
	return names
}

// Variables are the environment variables by which the cache's tool finds it; none
// for a cache whose name isn't known.
func (c *Cache) Variables() map[string]string {
	k := knownCache(c.Name)
	if k == nil {
		return nil
	}
	out := maps.Clone(k.options)
	if out == nil {
		out = make(map[string]string, len(k.variables))
	}
	for name, below := range k.variables {
		out[name] = k.prefix + path.Join(c.Target.V, below)
	}
	return out
}

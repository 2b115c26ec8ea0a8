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
	// Variables are set in the worker, unless its env has them: a path below the
	// cache by name.
	variables map[string]string
	// prefix is before the path in the value, for a tool that is told by an option.
	prefix string
}

// CacheDir is the directory in a worker in which known caches are.
const CacheDir = "/caches"

// knownCaches by the variables that each tool documents. A download cache has what
// anybody can fetch again and the tool checks or should check; what was built here
// has a name of its own.
var knownCaches = []KnownCache{
	{Name: "bun", variables: at("BUN_INSTALL_CACHE_DIR")},
	{Name: "bundler", variables: at("BUNDLE_USER_CACHE")},
	{Name: "cargo", variables: at("CARGO_HOME")}, // registry, git, and what is installed
	{Name: "ccache", Build: true, variables: at("CCACHE_DIR")},
	{Name: "composer", variables: at("COMPOSER_CACHE_DIR")},
	{Name: "deno", variables: at("DENO_DIR")},
	{Name: "go", variables: at("GOMODCACHE")},
	{Name: "go-build", Build: true, variables: at("GOCACHE")},
	{Name: "gradle", variables: at("GRADLE_USER_HOME")},
	{Name: "huggingface", variables: at("HF_HUB_CACHE")},
	{Name: "maven", variables: at("MAVEN_OPTS"), prefix: "-Dmaven.repo.local="},
	{Name: "npm", variables: at("npm_config_cache")},
	{Name: "nuget", variables: at("NUGET_PACKAGES")},
	{Name: "pip", variables: at("PIP_CACHE_DIR")},
	{Name: "playwright", variables: at("PLAYWRIGHT_BROWSERS_PATH")},
	{Name: "pnpm", variables: at("npm_config_store_dir", "pnpm_config_store_dir")}, // to 10, and from 11
	{Name: "poetry", variables: at("POETRY_CACHE_DIR")},
	{Name: "pre-commit", Build: true, variables: at("PRE_COMMIT_HOME")},
	{Name: "sccache", Build: true, variables: at("SCCACHE_DIR")},
	{Name: "turbo", Build: true, variables: at("TURBO_CACHE_DIR")},
	{Name: "uv", variables: at("UV_CACHE_DIR")},
	// Yarn 1 and Yarn 2 to 4; these ignore the first with enableGlobalCache, their default.
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

// Variables are the names of the variables that tell the tool, sorted.
func (k *KnownCache) Variables() []string { return slices.Sorted(maps.Keys(k.variables)) }

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
	out := make(map[string]string, len(k.variables))
	for name, below := range k.variables {
		out[name] = k.prefix + path.Join(c.Target.V, below)
	}
	return out
}

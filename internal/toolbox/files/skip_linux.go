package files

import "strings"

// skippedNames are directories of dependencies and caches that a walk skips
// without a .gitignore. Sources have none of these names; they may have build,
// dist, target and vendor, but see [marked].
var skippedNames = map[string]bool{
	// dependencies
	"node_modules": true, "bower_components": true, "jspm_packages": true, ".pnpm-store": true, ".yarn": true,
	".venv": true, "site-packages": true, ".eggs": true, ".bundle": true,
	// caches and what tools build
	"__pycache__": true, ".cache": true, ".npm": true, ".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".tox": true, ".nox": true,
	".gradle": true, ".terraform": true, ".next": true, ".nuxt": true, ".svelte-kit": true, ".parcel-cache": true, ".turbo": true,
	".angular": true, ".dart_tool": true, ".direnv": true, ".stack-work": true, "dist-newstyle": true, "elm-stuff": true,
	// other version controls; .git is never entered
	".hg": true, ".svn": true, ".jj": true,
}

// marked reports whether a file says that the directory holds dependencies or a
// cache: of cargo and many others (bford.info/cachedir), of Python's venv, and in
// vendor of Go and of Composer.
func marked(dir, file string) bool {
	switch file {
	case "CACHEDIR.TAG", "pyvenv.cfg":
		return true
	case "modules.txt", "autoload.php":
		return dir[strings.LastIndexByte(dir, '/')+1:] == "vendor"
	}
	return false
}

// skips reports whether a directory is one of dependencies or a cache, by its
// name. What is searched by its path, or named in the glob, isn't skipped.
func (w *walker) skips(p, name string) bool {
	if w.ignored || !skippedNames[name] || w.glob.names(name) {
		return false
	}
	w.skipped.add(w.shown(p))
	return true
}

// names reports whether a directory is named in the pattern.
func (g *glob) names(dir string) bool {
	return strings.Contains("/"+g.pattern, "/"+dir+"/")
}

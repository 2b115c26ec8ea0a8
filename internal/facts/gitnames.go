package facts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
)

// Bounds of following git's configuration (B60).
const (
	maxConfig    = 1 << 20  // bytes of one file,
	maxConfigAll = 64 << 20 // and of all
	maxGitFile   = 8 << 10  // bytes of one that names a directory
	maxConfigs   = 10_000   // files, included ones too
	maxIncludes  = 10       // deep, as git's own
	maxLookups   = 200_000  // of names in the file system
)

// gitNames collects files of the tree that git's configuration names: included
// configuration, hooks, programs. Git itself isn't used, as it would run them. All
// variables are treated as commands: each word of a value that names a file counts as
// a program that may be run.
type gitNames struct {
	dirs    []string            // git directories
	files   []string            // .git files: worktrees and submodules have one each
	trees   map[string][]string // worktrees of a git directory
	read    map[[2]string]bool  // files, each for a git directory
	bytes   int                 // of configuration
	indexes int64               // bytes of them
	links   []string            // in git directories
	lookups int
	by      string // file of configuration whose names are added
}

// noPaths are variables, as section.name, whose values git doesn't take for a path, a
// program or an option that has one: those of any clone, and common ones of users. A
// branch's merge is a ref, which is a file of the git directory.
var noPaths = map[string]bool{
	"author.email": true, "author.name": true, "committer.email": true, "committer.name": true, "user.email": true, "user.name": true,
	"branch.autosetupmerge": true, "branch.autosetuprebase": true, "branch.description": true, "branch.merge": true, "branch.rebase": true,
	"color.branch": true, "color.diff": true, "color.interactive": true, "color.status": true, "color.ui": true,
	"core.autocrlf": true, "core.bare": true, "core.eol": true, "core.filemode": true, "core.ignorecase": true, "core.logallrefupdates": true,
	"core.precomposeunicode": true, "core.repositoryformatversion": true, "core.safecrlf": true, "core.symlinks": true,
	"extensions.objectformat": true, "extensions.partialclone": true, "extensions.refstorage": true, "extensions.worktreeconfig": true,
	"fetch.prune": true, "init.defaultbranch": true, "merge.conflictstyle": true, "merge.ff": true, "pull.ff": true, "pull.rebase": true,
	"push.autosetupremote": true, "push.default": true, "push.followtags": true, "rebase.autosquash": true, "rebase.autostash": true,
	"remote.fetch": true, "remote.promisor": true, "remote.prune": true, "remote.push": true, "remote.tagopt": true, "rerere.enabled": true,
	"submodule.active": true, "submodule.branch": true, "submodule.recurse": true,
}

// nameOf returns the name of a variable without its section.
func nameOf(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// names adds the files that a worker can write to and that are named by configuration:
// of git directories in and around the tree, and of the user.
func (w *watcher) names() error {
	for _, l := range w.git.links {
		if late, err := w.late(); late {
			return err
		}
		switch to, err := hostlink.Follow(l, nil); {
		case err != nil:
			w.s[l] += leadsOut + "an unresolvable path: " + err.Error()
		case !w.writable(to):
			w.s[l] += leadsOut + ClipPath(to)
		}
	}
	w.git.read, w.git.trees = map[[2]string]bool{}, map[string][]string{}
	dirs := w.git.dirs
	for _, file := range w.git.files { // of worktrees and submodules
		if late, err := w.late(); late {
			return err
		}
		dirs = append(dirs, w.leads(file)...)
	}
	for _, root := range w.roots { // a mount may be a part of a repository
		for up := filepath.Dir(root); up != filepath.Dir(up); up = filepath.Dir(up) {
			dirs = append(dirs, w.leads(filepath.Join(up, ".git"))...)
			if isDotGit(filepath.Base(up)) || layoutOf(up).git() {
				dirs = append(dirs, up)
			}
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	// The base directories of names: git runs programs in the worktree, or in a git
	// directory without one.
	bases := map[string][]string{}
	var all []string
	for _, dir := range dirs {
		bases[dir] = append([]string{dir, filepath.Dir(dir)}, w.git.trees[dir]...)
		all = append(all, bases[dir]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	// First, so that others don't exhaust the bounds: with this environment, and with
	// another one.
	for _, file := range append(userConfigs(w.home, w.lookup), userConfigs(w.home, none)...) {
		if err := w.config(file, "", all, 0); err != nil {
			return err
		}
	}
	if err := w.values(envConfig(w.lookup), "/", "", all, 0); err != nil {
		return err
	}
	for _, dir := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			if err := w.config(filepath.Join(dir, name), dir, bases[dir], 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// leads returns the git directory of a .git file or directory, and the one with which
// it shares configuration, and records its worktree.
func (w *watcher) leads(file string) []string {
	tree, dir := filepath.Dir(file), file
	if text, err := boundedfile.Read(file, maxGitFile); err == nil {
		to, ok := strings.CutPrefix(string(text), "gitdir: ")
		if !ok {
			return nil
		}
		dir = pathFrom(tree, strings.TrimRight(to, "\r\n"))
	} else if info, err := os.Stat(file); err != nil || !info.IsDir() {
		return nil
	}
	if _, err := os.Stat(dir); err == nil { // EvalSymlinks follows more links than git
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	dirs := []string{dir}
	if common, err := boundedfile.Read(filepath.Join(dir, "commondir"), maxGitFile); err == nil {
		dirs = append(dirs, pathFrom(dir, strings.TrimRight(string(common), "\r\n")))
	}
	for _, d := range dirs {
		w.git.trees[d] = append(w.git.trees[d], tree)
	}
	return dirs
}

// config reads one configuration file; names in it are relative to bases.
func (w *watcher) config(file, dir string, bases []string, deep int) error {
	of := [2]string{file, dir}
	if w.git.read[of] {
		return nil
	}
	if late, err := w.late(); late {
		return err
	}
	text, err := readConfig(file)
	if err != nil {
		var large boundedfile.SizeError
		if errors.As(err, &large) && w.writable(file) {
			w.put(file, unchecked+large.Error())
		}
		return nil // not a readable configuration; as a file it is already added
	}
	w.git.bytes += len(text)
	if w.git.read[of] = true; len(w.git.read) > maxConfigs || w.git.bytes > maxConfigAll || deep > maxIncludes {
		w.put(file, fmt.Sprintf("%smore than %d files or %d bytes of configuration, or %d includes deep", unchecked, maxConfigs, maxConfigAll, maxIncludes))
		return nil
	}
	return w.values(text, file, dir, bases, deep)
}

// values adds the names in the text of a configuration file.
func (w *watcher) values(text, file, dir string, bases []string, deep int) error {
	bases = slices.Clip(bases)
	for key, value := range gitConfig(text) {
		if nameOf(key) == "worktree" && dir != "" {
			bases = append(bases, pathFrom(dir, value))
		}
	}
	defer func(by string) { w.git.by = by }(w.git.by)
	w.git.by = file
	seen := map[string]bool{}
	for key, value := range gitConfig(text) {
		if value = w.expanded(value); value == "" || seen[key+"="+value] || noPaths[key] {
			continue
		}
		seen[key+"="+value] = true
		name := nameOf(key)
		if name == "path" {
			included := pathFrom(filepath.Dir(file), value)
			w.named(included)
			if err := w.config(included, dir, bases, deep+1); err != nil {
				return err
			}
		}
		for _, base := range bases {
			if name == "hookspath" && w.git.lookups < maxLookups {
				if err := w.follow(link{path: pathFrom(base, value), whole: true}); err != nil {
					return err
				}
			}
			for _, word := range words(value) {
				if late, err := w.late(); late {
					return err
				}
				if w.git.lookups++; w.git.lookups > maxLookups {
					w.put(file, fmt.Sprintf("%smore than %d names in configuration", unchecked, maxLookups))
					return nil
				}
				w.named(pathFrom(base, w.expanded(word)))
			}
		}
	}
	return nil
}

// named adds a file, and the target if it is a symlink.
func (w *watcher) named(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() {
		return
	}
	if w.writable(path) {
		w.path(path)
	}
	_ = w.follow(link{path: path}) // a file, so nothing is walked
}

// expanded returns a value with ~ replaced by the user's home.
func (w *watcher) expanded(value string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && w.home != "" {
		return filepath.Join(w.home, rest)
	}
	return value
}

// words returns a value, and the words in it that a shell could use as file names.
func words(value string) []string {
	out := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n!\"'`;|&()<>$=", r) })
	if len(out) != 1 || out[0] != value {
		if strings.ContainsAny(value, "$`") { // $PWD/x, $(git rev-parse --show-toplevel)/x
			for _, word := range out {
				if _, rest, ok := strings.Cut(word, "/"); ok {
					out = append(out, rest)
				}
			}
		}
		out = append(out, value)
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) > maxPath || strings.ContainsRune(s, 0) })
}

// pathFrom resolves a path relative to a directory.
func pathFrom(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// readConfig reads a file of configuration.
func readConfig(file string) (string, error) {
	text, err := boundedfile.Read(file, maxConfig)
	return string(text), err
}

// userConfigs returns git's configuration files for all repositories, in order of
// increasing precedence (git(1), git-config(1)).
func userConfigs(home string, lookup func(string) (string, bool)) (files []string) {
	if file, ok := lookup("GIT_CONFIG_SYSTEM"); ok {
		files = append(files, file)
	} else {
		files = append(files, "/etc/gitconfig")
	}
	if file, ok := lookup("GIT_CONFIG_GLOBAL"); ok {
		return append(files, file)
	}
	xdg, _ := lookup("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	return append(files, filepath.Join(xdg, "git/config"), filepath.Join(home, ".gitconfig"))
}

// none is an environment without variables.
func none(string) (string, bool) { return "", false }

// envConfig returns the configuration in environment variables (GIT_CONFIG_COUNT),
// which overrides all files, as the text of a file.
func envConfig(lookup func(string) (string, bool)) string {
	count, _ := lookup("GIT_CONFIG_COUNT")
	n, _ := strconv.Atoi(count)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for i := range min(n, maxConfigs) {
		key, _ := lookup(fmt.Sprintf("GIT_CONFIG_KEY_%d", i))
		value, _ := lookup(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
		section, _, _ := strings.Cut(key, ".")
		if strings.TrimFunc(section, isKey) != "" {
			section = ""
		}
		fmt.Fprintf(&b, "[%s]\n%s = \"%s\"\n", section, nameOf(key), escape.Replace(value))
	}
	return b.String()
}

// GitRefusesBare reports whether the user's configuration makes git refuse bare
// repositories that it discovers (safe.bareRepository).
func GitRefusesBare(home string, lookup func(string) (string, bool)) bool {
	refuses := false
	var texts []string
	for _, file := range userConfigs(home, lookup) {
		if text, err := readConfig(file); err == nil {
			texts = append(texts, text)
		}
	}
	for _, text := range append(texts, envConfig(lookup)) {
		for key, value := range gitConfig(text) {
			if nameOf(key) == "barerepository" {
				refuses = value == "explicit"
			}
		}
	}
	return refuses
}

package facts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/pathglob"
	"github.com/llmdo/workshop/workshop"
)

// maxAuthor bounds a name or an address, in bytes.
const maxAuthor = 256

// author collects who commits, where the file says `git_author: host`: from the user's own
// git configuration, never from the repository's, which would choose a name of its own.
func (c *collector) author() {
	var w *workshop.Worker
	for i := range c.o.Workshop.Workers {
		if c.o.Workshop.Workers[i].Container.GitAuthor.V == workshop.GitAuthorHost {
			w = &c.o.Workshop.Workers[i]
			break
		}
	}
	if w == nil {
		return
	}
	at := w.Container.GitAuthor.Source.Range
	u := userConfig{home: c.o.Home, gitDir: gitDirOf(c.facts.ProjectDir, c.o.UID), values: map[string]string{}}
	for _, file := range userConfigs(c.o.Home, c.o.lookup) {
		if !filepath.IsAbs(file) { // without a home
			continue
		}
		if err := u.file(file, 0); err != nil {
			c.problem("git-author", at, "can't read your git configuration: "+err.Error(), "")
			return
		}
	}
	if err := u.text(envConfig(c.o.lookup), "/", 0); err != nil {
		c.problem("git-author", at, "can't read your git configuration: "+err.Error(), "")
		return
	}
	for _, what := range []string{"name", "email"} {
		for _, who := range []string{"author", "committer"} {
			value := u.values[who+"."+what]
			if value == "" {
				value = u.values["user."+what]
			}
			if value == "" {
				c.problem("git-author", at, fmt.Sprintf("`git_author: host` needs user.%s, which your git configuration doesn't have", what),
					fmt.Sprintf("set it: `git config --global user.%s %q`", what, map[string]string{"name": "Your Name", "email": "you@example.org"}[what]))
				break
			}
			if len(value) > maxAuthor || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
				c.problem("git-author", at, fmt.Sprintf("%s.%s of your git configuration is longer than %d bytes, or has characters that are not shown", who, what, maxAuthor), "set another one: `git config --global --edit`")
				break
			}
			*c.facts.GitAuthor.Field(who, what) = value
		}
	}
}

// userConfig reads a user's git configuration with what it includes.
type userConfig struct {
	home   string
	gitDir string            // of the project, for conditional includes; empty: none
	values map[string]string // the last ones, as section.name
	files  int
}

func (u *userConfig) file(name string, deep int) error {
	if u.files++; u.files > maxConfigs || deep > maxIncludes {
		return fmt.Errorf("%s: more than %d files, or %d includes deep", ClipPath(name), maxConfigs, maxIncludes)
	}
	if name == os.DevNull { // GIT_CONFIG_GLOBAL=/dev/null means that there is none
		return nil
	}
	text, err := readConfig(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // as git
	}
	if err != nil {
		return fmt.Errorf("%s: %s", ClipPath(name), boundedfile.Reason(err))
	}
	return u.text(text, filepath.Dir(name), deep)
}

func (u *userConfig) text(text, dir string, deep int) error {
	for v := range gitVariables(text) {
		included := v.section == "include" && v.sub == "" || v.section == "includeif" && u.applies(v.sub, dir)
		switch {
		case included && v.name == "path":
			if err := u.file(pathFrom(dir, u.expanded(v.value)), deep+1); err != nil {
				return err
			}
		case v.sub == "":
			u.values[v.section+"."+v.name] = v.value
		}
	}
	return nil
}

func (u *userConfig) expanded(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(u.home, rest)
	}
	return p
}

// applies reports whether an includeIf counts: those on the place of the git directory.
// Others (onbranch, hasconfig) are what the repository says.
func (u *userConfig) applies(condition, dir string) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	if u.gitDir == "" || kind != "gitdir" && kind != "gitdir/i" {
		return false
	}
	at := u.gitDir
	if real, err := filepath.EvalSymlinks(u.home); err == nil && strings.HasPrefix(pattern, "~/") {
		pattern = real + pattern[1:]
	}
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = dir + "/" + rest
	}
	if !filepath.IsAbs(pattern) {
		pattern = "**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if kind == "gitdir/i" {
		at, pattern = strings.ToLower(at), strings.ToLower(pattern)
	}
	if pathglob.Check(pattern) != nil {
		return false
	}
	ok, err := doublestar.Match(pattern, at)
	return err == nil && ok
}

// gitDirOf returns the git directory of a project, with symlinks resolved; empty if there is
// none. Of a .git file it takes what is proved.
func gitDirOf(project string, caller int) string {
	for dir := project; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(dir, ".git"))
		switch {
		case err == nil && info.Mode().IsRegular():
			r, ok := readLinked(dir, ".")
			if !ok || r.find() != nil || r.owned(info, caller) != nil {
				return ""
			}
			return r.own
		case err == nil:
			real, _ := filepath.EvalSymlinks(filepath.Join(dir, ".git"))
			return real
		case dir == filepath.Dir(dir):
			return ""
		}
	}
}

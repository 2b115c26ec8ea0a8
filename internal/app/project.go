package app

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// MaxProjectName is how long the name of a project, workshop or worker may be.
const MaxProjectName = 63

// validName reports whether a project, workshop or worker may be called so:
// [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case (c == '_' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= MaxProjectName
}

// projectName is -p, else the workshop's name, in a linked git worktree with
// the worktree's name after it, so that two checkouts of one repository can
// be up at the same time.
func (env *Env) projectName(name, dir string) (string, error) {
	if p := env.Settings.Project; p != "" {
		if !ValidName(p) {
			return "", Fail(CodeUsage, "project name %q: only lower-case letters, digits, _ and -, at most %d", p, MaxProjectName).
				Hint("for example `-p %s`", ProjectSafe(p, name))
		}
		return p, nil
	}
	if tree := linkedWorktree(dir); tree != "" {
		return shorten(name + "-" + ProjectSafe(tree, "worktree")), nil
	}
	return name, nil
}

// ProjectSafe turns any name into one that a project may have.
func ProjectSafe(s, fallback string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r < 0x80 && ValidName("x"+string(r)):
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s = strings.Trim(b.String(), "-_")
	if s == "" {
		return fallback
	}
	return shorten(s)
}

// shorten keeps long names apart by a hash of what was cut off.
func shorten(s string) string {
	if len(s) <= MaxProjectName {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return s[:MaxProjectName-9] + "-" + hex.EncodeToString(sum[:4])
}

// linkedWorktree returns the name of the linked git worktree that dir is in,
// or nothing. The worktree's `.git` is a file "gitdir: PATH"; a submodule has
// one too, but only a worktree's PATH has a file commondir
// (gitrepository-layout(5)). No git program is needed.
func linkedWorktree(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		info, err := os.Lstat(git)
		if err != nil {
			if dir == filepath.Dir(dir) {
				return ""
			}
			continue
		}
		if !info.Mode().IsRegular() {
			return ""
		}
		data, err := boundedfile.Read(git, 4096)
		if err != nil {
			return ""
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
		if !ok {
			return ""
		}
		target = strings.TrimSpace(target)
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if _, err := os.Stat(filepath.Join(target, "commondir")); err != nil {
			return ""
		}
		return filepath.Base(target)
	}
}

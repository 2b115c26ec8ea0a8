package compose

import (
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// protectedDirs are the directories of B8: what is in them, programs of
// the host run later; .workshop is what plain Compose starts.
var protectedDirs = []string{".claude", ".git", ".github", ".husky", ".idea", ".vscode", ".workshop"}

// Protected is a directory, or a file called .git, that a worker must not change (B8).
type Protected struct {
	Path string // relative to the source, with slashes
	Kind ProtectedKind
}

// ProtectedKind says what `git: rw` does to a protected directory.
type ProtectedKind int

// The kinds of protected directories.
const (
	ProtectedDir ProtectedKind = iota // read-only always; a .git file, too
	GitDir                            // what git takes for a git directory: writable with `git: rw`
	GitHooks                          // hooks of a git directory: read-only always
)

// protectedMounts keeps a worker from changing protected directories below an
// rw mount (B8): each is mounted over itself read-only. With `git: rw`, git
// directories are writable and only their hooks are read-only.
//
// A mount holds the directory itself, but not the name of a directory above
// it: `mv .git .git2` would leave the mount behind and the name free. So every
// directory between the mount and a protected one is mounted over itself too,
// writable; the kernel refuses to rename a mount point (EBUSY).
//
// sources are other mounts' sources below this one, and mount points in it. They
// are pinned alike: a worker that could put a symlink in their place between the
// look at them and the start of a container would be given any directory of the
// host, or choose what is mounted over workshop-init (B7, B12).
//
// covered reports whether a target is at or below another mount of the worker:
// that one is a mount point already, and hides what it covers.
func protectedMounts(m *workshop.Mount, real string, found []Protected, sources []string, covered func(target string) bool) []types.ServiceVolumeConfig {
	readOnly := map[string]bool{} // path → read-only, or a pin
	for _, p := range found {
		if p.Kind == GitHooks && !m.GitWritable {
			continue // the git directory as a whole is read-only
		}
		readOnly[p.Path] = p.Kind != GitDir || !m.GitWritable
		pinWay(readOnly, p.Path)
	}
	for _, p := range sources {
		if _, known := readOnly[p]; !known {
			readOnly[p] = false
		}
		pinWay(readOnly, p)
	}
	var mounts []types.ServiceVolumeConfig
	for _, p := range sortedKeys(readOnly) {
		if !underReadOnly(readOnly, p) && !covered(path.Join(m.Target.V, p)) {
			mounts = append(mounts, bind(path.Join(real, p), path.Join(m.Target.V, p), readOnly[p]))
		}
	}
	return mounts
}

// pinWay adds the directories between the mount and p.
func pinWay(readOnly map[string]bool, p string) {
	for up := path.Dir(p); up != "."; up = path.Dir(up) {
		if _, known := readOnly[up]; !known {
			readOnly[up] = false
		}
	}
}

// coveredBy returns a function that reports whether a target inside m is at or
// below another mount of the container.
func coveredBy(k *workshop.Container, m *workshop.Mount) func(string) bool {
	return func(target string) bool {
		for i := range k.Mounts {
			t := k.Mounts[i].Target.V
			if t != m.Target.V && subpath.Within(t, m.Target.V) && subpath.Within(target, t) {
				return true
			}
		}
		return false
	}
}

// sourcesBelow are the real sources of all mounts of the workshop, and the mount
// points of those inside of others, strictly below a directory, relative to it,
// sorted. What does not exist can't be pinned; a mount of it, or there, is refused.
func (f *Facts) sourcesBelow(dir string) []string {
	var out []string
	add := func(p string) {
		if p != dir && subpath.Within(p, dir) {
			out = append(out, strings.TrimPrefix(p[len(strings.TrimSuffix(dir, "/")):], "/"))
		}
	}
	for _, sf := range f.Sources {
		if sf.Exists {
			add(sf.Real)
		}
	}
	for p, found := range f.Points {
		if found.Exists && found.Link == "" {
			add(p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// underReadOnly reports whether a directory above p is read-only as a whole.
func underReadOnly(readOnly map[string]bool, p string) bool {
	for up := path.Dir(p); up != "."; up = path.Dir(up) {
		if readOnly[up] {
			return true
		}
	}
	return false
}

// IsProtected reports whether a directory with this base name is protected.
func IsProtected(name string) bool {
	// Case does not tell two names apart on the file systems of some hosts.
	return slices.Contains(protectedDirs, strings.ToLower(name))
}

// protectedOn names the protected directory that a source is, or is inside
// of, below the project; "" if there is none, ".git" for all git directories,
// ".git/hooks" for their hooks, wherever they are.
// Above the project nothing counts: a checkout may be anywhere.
func (f *Facts) protectedOn(real string) string {
	for _, sf := range f.Sources {
		if sf.GitHooks && sf.Real == real {
			return ".git/hooks"
		}
	}
	rel := path.Base(real)
	if subpath.Within(real, f.ProjectDir) {
		rel = strings.TrimPrefix(real[len(f.ProjectDir):], "/")
	}
	for part := range strings.SplitSeq(rel, "/") {
		if IsProtected(part) {
			return strings.ToLower(part)
		}
	}
	for _, sf := range f.Sources {
		if sf.Git && sf.Real == real {
			return ".git"
		}
	}
	return ""
}

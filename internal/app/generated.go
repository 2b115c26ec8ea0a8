package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// ManifestName is the list of the generated files with their hashes, in the
// form of sha256sum(1). By it, compile knows its own files from a user's.
const ManifestName = "generated.sha256"

// Generated is a Compose project as files that belong into one directory.
type Generated struct {
	// base is a directory that the person chose, sub the way from there. Below base no
	// symlink is followed: a repository can't aim the files elsewhere.
	base, sub string
	files     []compose.File // sorted by path, the manifest last
}

// Generate renders a project into the files of a directory; empty: .workshop/NAME
// next to the workshop file.
func (env *Env) Generate(c *Project, dir string) (Generated, error) {
	files, err := compose.Render(c.Compiled)
	if err != nil {
		return Generated{}, fmt.Errorf("compile: %w", err)
	}
	if dir != "" {
		return newGenerated(env.Abs(dir), ".", files), nil
	}
	return newGenerated(c.Root(), filepath.Join(".workshop", c.Workshop.Name.V), files), nil
}

func newGenerated(base, sub string, files []compose.File) Generated {
	files = slices.Clone(files)
	sortfunc.Stable(files, func(a, b compose.File) int { return strings.Compare(a.Path, b.Path) })
	var manifest bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&manifest, "%s  %s\n", digest(f.Data), f.Path)
	}
	return Generated{base: base, sub: sub, files: append(files, compose.File{Path: ManifestName, Data: manifest.Bytes(), Mode: 0o644})}
}

// Path is the absolute path of one of the files, or with "" of the directory.
func (g Generated) Path(name string) string {
	return filepath.Join(g.base, g.sub, filepath.FromSlash(name))
}

// open returns the directory; it need not exist when create is false.
func (g Generated) open(create bool) (*os.Root, error) {
	if create {
		if err := os.MkdirAll(g.base, 0o755); err != nil {
			return nil, err
		}
	}
	base, err := os.OpenRoot(g.base)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	return hostlink.OpenDir(base, g.sub, create)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Limits of what is in the place of generated files, in bytes.
const (
	maxManifest  = 256 << 10
	maxGenerated = 16 << 20
)

// previous reads the manifest of the last run: digests by path. Lines that
// are no such entry are skipped: what isn't listed counts as a user's file,
// which is the safe side.
// After a run that was killed, a file has several.
func previous(dir *os.Root) (map[string][]string, error) {
	data, err := boundedfile.ReadIn(dir, ManifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if ok && len(sum) == 64 && fs.ValidPath(name) {
			known[name] = append(known[name], sum)
		}
	}
	return known, nil
}

// Written is what [Generated.Write] did, as names for [Generated.Path]. Kept were
// changed by hand; Strange are what Compose reads besides, by itself.
type Written struct{ Wrote, Removed, Kept, Strange []string }

// Write brings the directory to the generated state: each file appears whole
// or not at all, files of the last run that are no longer generated go, and
// whatever somebody changed or put there is kept, as NAME.orig if its place is
// needed.
func (g Generated) Write() (Written, error) {
	var done Written
	dir, err := g.open(true)
	if err != nil {
		return done, err
	}
	defer dir.Close()
	known, err := previous(dir)
	if err != nil {
		return done, err
	}
	announced, err := g.announce(dir, known)
	if err != nil {
		return done, err
	}
	for _, f := range g.files {
		old, err := boundedfile.ReadIn(dir, f.Path, maxGenerated)
		switch {
		case err == nil && bytes.Equal(old, f.Data) && !(announced && f.Path == ManifestName):
			continue
		case err == nil && f.Path != ManifestName && !slices.Contains(known[f.Path], digest(old)):
			name, err := keep(dir, f.Path)
			if err != nil {
				return done, err
			}
			done.Kept = append(done.Kept, name)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return done, err
		}
		if err := replaceFile(dir, f); err != nil {
			return done, err
		}
		done.Wrote = append(done.Wrote, f.Path)
	}
	for _, name := range g.stale(known) {
		data, err := boundedfile.ReadIn(dir, name, maxGenerated)
		if err != nil {
			continue
		}
		if !slices.Contains(known[name], digest(data)) {
			done.Kept = append(done.Kept, name)
			continue
		}
		if err := dir.Remove(name); err != nil {
			return done, err
		}
		if parent := path.Dir(name); parent != "." {
			dir.Remove(parent) // succeeds only if it is empty now
		}
		done.Removed = append(done.Removed, name)
	}
	done.Strange = strange(dir)
	return done, nil
}

// announce adds what is to be written to the manifest: a run that is killed in
// between must not take its files for a user's. The manifest of this one comes last.
func (g Generated) announce(dir *os.Root, known map[string][]string) (announced bool, err error) {
	var both bytes.Buffer
	for _, f := range g.files[:len(g.files)-1] {
		if sum := digest(f.Data); !slices.Contains(known[f.Path], sum) {
			announced = true
			fmt.Fprintf(&both, "%s  %s\n", sum, f.Path)
		}
	}
	if !announced {
		return false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		for _, sum := range known[name] {
			fmt.Fprintf(&both, "%s  %s\n", sum, name)
		}
	}
	return true, replaceFile(dir, compose.File{Path: ManifestName, Data: both.Bytes(), Mode: 0o644})
}

// keep moves a file that we didn't write out of the way, to a free name.
func keep(dir *os.Root, name string) (string, error) {
	free := name + ".orig"
	for i := 2; ; i++ {
		if _, err := dir.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free, dir.Rename(name, free)
		} else if err != nil {
			return "", err
		}
		free = fmt.Sprintf("%s.orig.%d", name, i)
	}
}

// stale are the files of the last run that this one doesn't generate, sorted.
func (g Generated) stale(known map[string][]string) []string {
	var names []string
	for name := range known {
		if !slices.ContainsFunc(g.files, func(f compose.File) bool { return f.Path == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Difference is one file that isn't as it would be generated.
type Difference struct {
	Path string // a name for [Generated.Path]; empty: all of it
	What string // is different: "is missing"
	Diff []byte // a unified one; nil for a file that isn't there or doesn't belong there
}

// Check compares the directory with the generated state.
func (g Generated) Check() ([]Difference, error) {
	dir, err := g.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return []Difference{{What: "is missing"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var all []Difference
	for _, f := range g.files {
		old, err := boundedfile.ReadIn(dir, f.Path, maxGenerated)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, Difference{Path: f.Path, What: "is missing"})
		case err != nil:
			return nil, err
		case !bytes.Equal(old, f.Data):
			all = append(all, Difference{f.Path, "differs", diff.Diff("written/"+f.Path, old, "compiled/"+f.Path, f.Data)})
		}
	}
	known, err := previous(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range g.stale(known) {
		if _, err := dir.Lstat(name); err == nil {
			all = append(all, Difference{Path: name, What: "is no longer generated"})
		}
	}
	for _, name := range strange(dir) {
		all = append(all, Difference{Path: name, What: "is not generated, and Compose reads it by itself"})
	}
	return all, nil
}

// byItself are the files that Compose takes from the directory that it runs in
// without being told: what they say would come on top of what is generated.
var byItself = []string{
	".env", "compose.override.yaml", "compose.override.yml", "compose.yml",
	"docker-compose.override.yaml", "docker-compose.override.yml", "docker-compose.yaml", "docker-compose.yml",
}

// strange are those of them that are there.
func strange(dir *os.Root) (there []string) {
	for _, name := range byItself {
		if _, err := dir.Lstat(name); err == nil {
			there = append(there, name)
		}
	}
	return there
}

// replaceFile writes a file next to its place and renames it there, so that a
// reader and a crash never see half of it.
func replaceFile(dir *os.Root, f compose.File) error {
	if err := dir.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	temporary := f.Path + ".new"
	dir.Remove(temporary) // of a run that was killed
	mode := fs.FileMode(f.Mode)
	if mode == 0 {
		mode = 0o644
	}
	w, err := dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.Data)
	if err = errors.Join(err, w.Chmod(mode), w.Close()); err != nil {
		dir.Remove(temporary)
		return err
	}
	return dir.Rename(temporary, f.Path)
}

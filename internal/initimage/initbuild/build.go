package initbuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// Options are what a build needs of its caller.
type Options struct {
	// CacheDir is the user's for this program; empty is an error.
	CacheDir string
	// Lookup reads the environment.
	Lookup func(string) (string, bool)
	// Say gets one line before a build; nil: nobody reads it.
	Say func(string)
}

// keptTime is how long programs that others were built of stay in the cache.
const keptTime = 30 * 24 * time.Hour

// For returns the function for [initimage.Set.Else].
func For(ctx context.Context, o Options) func(arch string) (fs.FS, error) {
	return func(arch string) (fs.FS, error) { return files(ctx, o, arch, self) }
}

// files returns a directory with the packed program and its names, as embedded ones are.
// It is in the cache, by what it is built of.
func files(ctx context.Context, o Options, arch string, self func() (source, error)) (fs.FS, error) {
	s, err := self()
	if err != nil {
		return nil, err
	}
	if o.CacheDir == "" {
		return nil, errors.New("there is no cache directory: set HOME or XDG_CACHE_HOME")
	}
	all := filepath.Join(o.CacheDir, "built")
	dir := filepath.Join(all, s.key())
	if kept(dir, arch) {
		return os.DirFS(dir), nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the cache: %w", err)
	}
	lock := flock.New(filepath.Join(all, "lock"))
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("the cache: %w", err)
	}
	if kept(dir, arch) { // another one built it meanwhile
		return os.DirFS(dir), nil
	}
	if err := private(all, dir); err != nil {
		return nil, err
	}
	data, err := build(ctx, o, s, arch)
	if err != nil {
		return nil, err
	}
	if err := keep(dir, arch, data); err != nil {
		return nil, fmt.Errorf("the cache: %w", err)
	}
	prune(all, dir)
	return os.DirFS(dir), nil
}

// key names the source, and how it is built.
func (s source) key() string {
	b, err := json.Marshal(struct {
		Source source
		Flags  []string
	}{s, initimage.BuildFlags()})
	if err != nil {
		panic(err) // strings and a time
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// kept reports whether the cache has the program: complete, and written by nobody else.
func kept(dir, arch string) bool {
	for _, name := range []string{filepath.Dir(dir), dir, filepath.Join(dir, initimage.FileName(arch)), filepath.Join(dir, initimage.NamesFile(arch))} {
		if private(name) != nil {
			return false
		}
	}
	return true
}

// private refuses files that somebody else could have written: with the environment of
// another user (sudo -E), the cache is theirs.
func private(names ...string) error {
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		uid, _, known := fileowner.Of(info)
		if !info.Mode().IsDir() && !info.Mode().IsRegular() || known && (uid != os.Geteuid() || info.Mode().Perm()&0o022 != 0) {
			return fmt.Errorf("%s belongs to another user, or others can write to it: set XDG_CACHE_HOME to a directory of your own", name)
		}
	}
	return nil
}

// keep writes the program, and at last its names.
func keep(dir, arch string, data []byte) error {
	names, err := initimage.Describe(arch, data)
	if err != nil {
		return err
	}
	about, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return errors.Join(
		atomicfile.Write(filepath.Join(dir, initimage.FileName(arch)), initimage.PackFast(data), 0o600),
		atomicfile.Write(filepath.Join(dir, initimage.NamesFile(arch)), about, 0o600),
	)
}

// prune removes programs of other builds that are old: who still needs one builds it
// again.
func prune(all, current string) {
	list, _ := os.ReadDir(all)
	for _, e := range list {
		info, err := e.Info()
		dir := filepath.Join(all, e.Name())
		if err == nil && e.IsDir() && dir != current && time.Since(info.ModTime()) > keptTime {
			_ = os.RemoveAll(dir)
		}
	}
}

// build builds the program in an empty environment, see the package.
func build(ctx context.Context, o Options, s source, arch string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "workshop-init-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	clean := filepath.Join(temp, "clean")
	if err := os.Mkdir(clean, 0o700); err != nil {
		return nil, err
	}
	t, err := findGo(ctx, o.Lookup, clean, s.Go)
	if err != nil {
		return nil, err
	}
	if s.Sum == "" { // before time is spent on it
		if err := t.unchanged(ctx, s, arch); err != nil {
			return nil, err
		}
	}
	if o.Say != nil {
		o.Say(fmt.Sprintf("building workshop-init from %s, this once; it takes up to a minute", s))
	}
	dir := s.Dir
	if s.Sum != "" {
		if dir, err = t.download(ctx, s); err != nil {
			return nil, fmt.Errorf("workshop-init can't be built: %w", err)
		}
	}
	// Modules in the cache are those that go.sum names.
	if _, err := t.run(ctx, dir, "mod", "verify"); err != nil {
		return nil, fmt.Errorf("workshop-init can't be built: %w", err)
	}
	out := filepath.Join(temp, "workshop-init")
	t.env = append(t.env, "GOOS=linux", "GOARCH="+arch)
	args := append([]string{"build", "-mod=readonly", "-o", out}, initimage.BuildFlags()...)
	if _, err := t.run(ctx, dir, append(args, program)...); err != nil {
		return nil, fmt.Errorf("workshop-init can't be built: %w", err)
	}
	if s.Sum == "" { // what was compiled
		if err := t.unchanged(ctx, s, arch); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(out)
}

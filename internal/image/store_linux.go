package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// Store is a directory of unpacked images. It is safe for use by several
// goroutines and processes.
//
//	images/HEX/rootfs      the files of the image with that ID
//	images/HEX/image.json  the marker, written last: only a complete image has one
//	images/HEX/*           files made of the image (Beside)
//	refs/HEX.json          which ID a name in a registry had, by the name's hash
//	work/HEX/              an image being unpacked, until it is renamed
//	locks/HEX              held (flock) while an image is unpacked or removed
//
// The directory is accessible to its owner alone: it holds the programs of images, with
// their own owners if root unpacked them.
type Store struct {
	dir string
	o   Options
}

// format is the version of the store; images of another one are unpacked again.
const format = 1

// marker is the content of image.json.
type marker struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	Size   int64  `json:"size"`
	Config Config `json:"config"`
}

// nameRecord is the content of a file in refs.
type nameRecord struct {
	Ref string `json:"ref"`
	ID  string `json:"id"`
}

// Open opens a directory as a store, and creates it if necessary. It refuses one that
// others may write to.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	o.Arch, o.Limits = cmp.Or(o.Arch, runtime.GOARCH), o.Limits.withDefaults()
	for _, d := range []string{dir, filepath.Join(dir, "images"), filepath.Join(dir, "refs"), filepath.Join(dir, "work"), filepath.Join(dir, "locks")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	if uid, _, ok := fileowner.Of(info); !ok || uid != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("image store: %s is accessible to others: run `chown -R %d %s` and `chmod 700 %s`, or remove it", dir, os.Geteuid(), shellquote.Quote(dir), shellquote.Quote(dir))
	}
	return &Store{dir: dir, o: o}, nil
}

// remembered reports whether the store knows a reference's image by name. Of layouts and
// archives the current content counts, unless the reference has their hash.
func remembered(ref reference.Ref) bool {
	return ref.Kind == reference.Registry || ref.Content != ""
}

// Lookup returns the image of a reference if it is in the store, else nil. It doesn't
// contact a registry, but reads layouts and archives whose hash isn't in the reference.
func (s *Store) Lookup(ctx context.Context, ref reference.Ref) (*Image, error) {
	if remembered(ref) {
		return s.named(ref)
	}
	src, err := s.source(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	f, err := src.resolve(ctx, ref, s.o.Arch, s.o.Limits)
	if err != nil {
		return nil, s.explain(ref, err)
	}
	return s.stored(ref, f.id)
}

// Get returns the image of a reference. It pulls and unpacks it if it isn't in the
// store.
func (s *Store) Get(ctx context.Context, ref reference.Ref, policy Policy, progress Progress) (*Image, error) {
	if remembered(ref) && policy != Always {
		if img, err := s.named(ref); img != nil || err != nil {
			return img, err
		}
		if policy == Never && ref.Kind == reference.Registry {
			return nil, &NotStoredError{Ref: ref}
		}
	}
	src, err := s.source(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	f, err := src.resolve(ctx, ref, s.o.Arch, s.o.Limits)
	if err == nil {
		err = f.checkSize(s.o.Limits)
	}
	if err != nil {
		return nil, s.explain(ref, err)
	}
	img, err := s.unpacked(ctx, ref, f, progress)
	if err != nil {
		return nil, s.explain(ref, err)
	}
	if remembered(ref) {
		err = s.remember(ref, f.id)
	}
	return img, err
}

// source is a source of images.
type source interface {
	// resolve reads everything of the image except its layers.
	resolve(ctx context.Context, ref reference.Ref, arch string, limits Limits) (*found, error)
	Close() error
}

func (s *Store) source(ctx context.Context, ref reference.Ref) (src source, err error) {
	switch ref.Kind {
	case reference.Registry:
		src, err = openRegistry(ref, s.o.Lookup)
	case reference.Layout:
		src, err = openLayout(ref.Path)
	case reference.Archive:
		src, err = openArchive(ctx, ref.Path, ref.Content)
	default:
		return nil, fmt.Errorf("image %q can't be unpacked", ref)
	}
	if err != nil {
		return nil, s.explain(ref, err)
	}
	return src, nil
}

func (s *Store) explain(ref reference.Ref, err error) error {
	if ref.Kind == reference.Registry {
		return explainRegistry(ref, err)
	}
	return fmt.Errorf("image %s: %w", ref, err)
}

// named returns the image that a name referred to when it was read.
func (s *Store) named(ref reference.Ref) (*Image, error) {
	data, err := os.ReadFile(s.nameFile(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var n nameRecord
	if json.Unmarshal(data, &n) != nil || n.Ref != ref.String() || checkDigest(n.ID) != nil {
		return nil, nil // pulled again
	}
	return s.stored(ref, n.ID)
}

// nameFile returns the file of a name and the architecture.
func (s *Store) nameFile(ref reference.Ref) string {
	sum := sha256.Sum256([]byte(s.o.Arch + " " + ref.String()))
	return filepath.Join(s.dir, "refs", hex.EncodeToString(sum[:])+".json")
}

func (s *Store) remember(ref reference.Ref, id string) error {
	return writeFile(s.nameFile(ref), nameRecord{Ref: ref.String(), ID: id})
}

// stored returns the image with an ID if it exists and is complete.
func (s *Store) stored(ref reference.Ref, id string) (*Image, error) {
	dir := s.imageDir(id)
	data, err := os.ReadFile(filepath.Join(dir, "image.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var m marker
	if json.Unmarshal(data, &m) != nil || m.Format != format || m.ID != id {
		return nil, nil // of another version, or damaged: unpacked again
	}
	return &Image{Ref: ref, ID: id, RootFS: filepath.Join(dir, "rootfs"), Config: m.Config, Size: m.Size}, nil
}

func (s *Store) imageDir(id string) string {
	return filepath.Join(s.dir, "images", strings.TrimPrefix(id, "sha256:"))
}

// lock locks an image against other processes and goroutines.
func (s *Store) lock(ctx context.Context, id string) (*flock.Flock, error) {
	l := flock.New(filepath.Join(s.dir, "locks", strings.TrimPrefix(id, "sha256:")), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(ctx, 50*time.Millisecond)
	if err == nil && !ok {
		err = errors.New("it is being unpacked")
	}
	if err != nil {
		return nil, fmt.Errorf("image store: wait for %s: %w", id, err)
	}
	return l, nil
}

// writeFile atomically replaces a file by JSON.
func writeFile(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(name, data, 0o600); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return nil
}

package initimage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// MaxSize is the largest workshop-init that is unpacked, in bytes.
const MaxSize = 64 << 20

// NotBuiltError means that no workshop-init for an architecture is embedded, and none
// could be built.
type NotBuiltError struct {
	Arch string
	Have []string // architectures that are embedded
	Why  error    // why none could be built; nil: nobody tried
}

// Unwrap returns Why.
func (e *NotBuiltError) Unwrap() error { return e.Why }

// Error has the remedy.
func (e *NotBuiltError) Error() string {
	if e.Why != nil {
		return fmt.Sprintf("no workshop-init for linux/%s: %v", e.Arch, e.Why)
	}
	if len(e.Have) == 0 {
		return "this build has no workshop-init embedded: run `make build` and use bin/workshop"
	}
	return fmt.Sprintf("this build has no workshop-init for linux/%s embedded (only for %s): run `make build` and use bin/workshop",
		e.Arch, strings.Join(e.Have, ", "))
}

// Set is a set of programs by architecture. The zero Set is not usable; [Default] is
// that of this build.
type Set struct {
	files fs.FS                            // workshop-init-linux-ARCH.zst and .json at the root
	dirs  []string                         // where that .zst is if files has the .json alone
	build func(arch string) (fs.FS, error) // of files that it doesn't have; nil: none

	mu        sync.Mutex
	installed string // path of a program that a package installed; empty: none

	built  map[string]fs.FS
	loaded map[string][]byte
	names  map[string]Names
}

// Names are derived from the bytes of a program.
type Names struct {
	Size   int64  `json:"size"`   // bytes
	Digest string `json:"digest"` // SHA-256 in hex
	// ImageID, ManifestID and Ref are those of [Image].
	ImageID    string `json:"image_id"`
	ManifestID string `json:"manifest_id"`
	Ref        string `json:"ref"`
}

// ToolMode is the program's mode on the tool volume: execute only. A process of
// a program that it can't read is not dumpable (execve(2), prctl(2)
// PR_SET_DUMPABLE): from its first instruction on, other processes of the
// worker's uid can neither trace it nor write to its descriptors.
const ToolMode = 0o111

// ReadableToolMode is its mode for workers of a sandbox, whose kernel has to read what it
// executes, and keeps PID 1 from being dumpable by prctl(2) alone.
const ReadableToolMode = 0o555

// Volume returns the name of the program's tool volume, derived from content and mode.
func (n Names) Volume() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %04o", n.Digest, ToolMode))
	return "workshop-init-" + hex.EncodeToString(sum[:12])
}

// Describe returns the names of a program.
func Describe(arch string, program []byte) (Names, error) {
	img, err := NewImage(arch, program)
	if err != nil {
		return Names{}, err
	}
	sum := sha256.Sum256(program)
	return Names{
		Size: int64(len(program)), Digest: hex.EncodeToString(sum[:]),
		ImageID: img.ID, ManifestID: img.ManifestID, Ref: img.Ref,
	}, nil
}

// NewSet reads compressed programs from the root of files.
func NewSet(files fs.FS) *Set { return &Set{files: files} }

// Else returns the set with programs that build makes where it has neither a program nor
// its names: the root of what build returns is as that of [NewSet], for one architecture.
func (s *Set) Else(build func(arch string) (fs.FS, error)) *Set {
	if !slices.ContainsFunc(arches, func(arch string) bool { return !s.has(arch) }) {
		return s
	}
	return &Set{files: s.files, dirs: s.dirs, installed: s.installed, build: build}
}

// has reports whether the program for arch, or at least its names, is embedded.
func (s *Set) has(arch string) bool {
	_, err := fs.Stat(s.files, FileName(arch))
	if err != nil {
		_, err = readNames(s.files, arch)
	}
	return err == nil
}

// filesOf returns the files with the program for arch, or its names: the embedded ones,
// and built ones without them.
func (s *Set) filesOf(arch string) (fs.FS, error) {
	if s.has(arch) {
		return s.files, nil
	}
	if s.built[arch] == nil {
		if s.build == nil {
			return nil, &NotBuiltError{Arch: arch, Have: s.archs()}
		}
		files, err := s.build(arch)
		if err != nil {
			return nil, &NotBuiltError{Arch: arch, Have: s.archs(), Why: err}
		}
		if s.built == nil {
			s.built = map[string]fs.FS{}
		}
		s.built[arch] = files
	}
	return s.built[arch], nil
}

// Binary returns the static workshop-init for linux on arch (a GOARCH), or a
// [NotBuiltError]. The caller must not change the bytes.
func (s *Set) Binary(arch string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(arch)
}

// Digest returns the SHA-256 of the program in hex.
func (s *Set) Digest(arch string) (string, error) {
	n, err := s.Names(arch)
	return n.Digest, err
}

// VolumeName returns the name of the program's tool volume.
func (s *Set) VolumeName(arch string) (string, error) {
	n, err := s.Names(arch)
	if err != nil {
		return "", err
	}
	return n.Volume(), nil
}

// Names returns the names of the program for arch, or a [NotBuiltError].
func (s *Set) Names(arch string) (Names, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.names[arch]; ok {
		return n, nil
	}
	files, err := s.filesOf(arch)
	if err != nil {
		return Names{}, err
	}
	n, err := readNames(files, arch)
	if err != nil {
		data, err := s.load(arch)
		if err != nil {
			return Names{}, err
		}
		if n, err = Describe(arch, data); err != nil {
			return Names{}, err
		}
	}
	if s.names == nil {
		s.names = map[string]Names{}
	}
	s.names[arch] = n
	return n, nil
}

// readNames reads the file written by pack.
func readNames(files fs.FS, arch string) (n Names, err error) {
	data, err := fs.ReadFile(files, NamesFile(arch))
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, err
	}
	if len(n.Digest) != 64 || !strings.HasPrefix(n.ImageID, "sha256:") || !strings.HasPrefix(n.ManifestID, "sha256:") {
		return n, errors.New("incomplete")
	}
	return n, nil
}

// load unpacks a program, which must match its names.
func (s *Set) load(arch string) ([]byte, error) {
	if data := s.loaded[arch]; data != nil {
		return data, nil
	}
	files, err := s.filesOf(arch)
	if err != nil {
		return nil, err
	}
	names, unnamed := readNames(files, arch)
	var data []byte
	if unnamed == nil {
		data = s.readInstalled(names)
	}
	if data == nil {
		packed, err := fs.ReadFile(files, FileName(arch))
		switch {
		case err == nil:
			data, err = unpack(packed)
			if err == nil && unnamed == nil && !names.of(data) {
				err = errors.New("it is not the one of its names: run `make build`")
			}
			if err != nil {
				return nil, fmt.Errorf("the embedded workshop-init for linux/%s: %w", arch, err)
			}
		case errors.Is(err, fs.ErrNotExist) && unnamed == nil:
			if data, err = s.readOther(arch, names); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
	if s.loaded == nil {
		s.loaded = map[string][]byte{}
	}
	s.loaded[arch] = data
	return data, nil
}

// of reports whether the names are those of a program.
func (n Names) of(program []byte) bool {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:]) == n.Digest
}

// readInstalled returns the installed program if it has these names; nil: none.
func (s *Set) readInstalled(n Names) []byte {
	if s.installed == "" {
		return nil
	}
	if st, err := os.Stat(s.installed); err != nil || st.Size() != n.Size {
		return nil
	}
	data, err := boundedfile.Read(s.installed, n.Size)
	if err != nil || !n.of(data) {
		return nil
	}
	return data
}

func (s *Set) archs() []string {
	var have []string
	for _, arch := range arches {
		if _, err := fs.Stat(s.files, FileName(arch)); err == nil {
			have = append(have, arch)
		}
	}
	return have
}

// arches are those for which programs are built.
var arches = []string{"amd64", "arm64"}

// Arches returns the architectures for which programs are built.
func Arches() []string { return slices.Clone(arches) }

// FileName is the name of the compressed program for an architecture.
func FileName(arch string) string { return "workshop-init-linux-" + arch + ".zst" }

// NamesFile is the name of the file with its [Names].
func NamesFile(arch string) string { return "workshop-init-linux-" + arch + ".json" }

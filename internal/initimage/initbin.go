package initimage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// MaxSize is the largest workshop-init that is unpacked, in bytes.
const MaxSize = 64 << 20

//go:embed bin
var embedded embed.FS

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

// Set is a set of embedded programs by architecture. The zero Set is not usable;
// [Default] is that of this build.
type Set struct {
	files fs.FS                            // workshop-init-linux-ARCH.zst at the root
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

// Else returns the set with programs that build makes where it has none: the root of
// what build returns is as that of [NewSet], for one architecture.
func (s *Set) Else(build func(arch string) (fs.FS, error)) *Set {
	if len(s.archs()) == len(arches) {
		return s
	}
	return &Set{files: s.files, installed: s.installed, build: build}
}

// filesOf returns the files with the program for arch. Without any, these are the
// embedded ones.
func (s *Set) filesOf(arch string) (fs.FS, error) {
	if _, err := fs.Stat(s.files, FileName(arch)); err == nil {
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

// Default returns the set embedded in this build.
func Default() *Set { return defaultSet() }

var defaultSet = sync.OnceValue(func() *Set {
	sub, err := fs.Sub(embedded, "bin")
	if err != nil {
		panic(err) // a constant name
	}
	s := NewSet(sub)
	s.installed = Installed
	return s
})

// Installed is where a package has the program of its architecture. It is used in place
// of the embedded one if it is the same, which its hash says: it needn't be unpacked.
const Installed = "/usr/libexec/workshop/workshop-init"

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
	if s.loaded == nil {
		s.loaded = map[string][]byte{}
	}
	if data := s.readInstalled(files, arch); data != nil {
		s.loaded[arch] = data
		return data, nil
	}
	packed, err := fs.ReadFile(files, FileName(arch))
	if err != nil {
		return nil, err
	}
	data, err := unpack(packed, func() ([]byte, error) {
		if arch == BaseArch {
			return nil, errOtherBase
		}
		return s.load(BaseArch)
	})
	if err != nil {
		return nil, fmt.Errorf("unpack workshop-init for linux/%s: %w", arch, err)
	}
	if n, err := readNames(files, arch); err == nil {
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != n.Digest {
			return nil, fmt.Errorf("the embedded workshop-init for linux/%s and its names differ: run `make build`", arch)
		}
	}
	s.loaded[arch] = data
	return data, nil
}

// readInstalled returns the installed program if it has the hash of the names; nil: none.
func (s *Set) readInstalled(files fs.FS, arch string) []byte {
	n, err := readNames(files, arch)
	if err != nil || s.installed == "" {
		return nil
	}
	if st, err := os.Stat(s.installed); err != nil || st.Size() != n.Size {
		return nil
	}
	data, err := boundedfile.Read(s.installed, n.Size)
	if err != nil {
		return nil
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != n.Digest {
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

// FileName is the name of the compressed program for an architecture.
func FileName(arch string) string { return "workshop-init-linux-" + arch + ".zst" }

// NamesFile is the name of the file with its [Names].
func NamesFile(arch string) string { return "workshop-init-linux-" + arch + ".json" }

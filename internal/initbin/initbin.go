// Package initbin carries workshop-init, the only program of ours inside
// containers, and makes of it the image that an engine runs it from.
//
// The binaries are embedded from bin/, compressed with zstd, one per
// architecture. They are built, not committed; `make build` runs, before it
// builds the host programs:
//
//	CGO_ENABLED=0 GOOS=linux GOARCH=$ARCH go build -trimpath -ldflags '-s -w' -o bin/workshop-init-linux-$ARCH ./cmd/workshop-init
//	go run ./internal/initbin/pack bin/workshop-init-linux-$ARCH internal/initbin/bin/workshop-init-linux-$ARCH.zst
//
// for ARCH amd64 and arm64. In a clone without them everything compiles, and
// [Binary] says what to do. Nothing of the environment is read.
package initbin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// MaxSize is the largest workshop-init that is unpacked, in bytes.
const MaxSize = 64 << 20

//go:embed bin
var embedded embed.FS

// NotBuiltError says that no workshop-init for an architecture is embedded.
type NotBuiltError struct {
	Arch string
	Have []string // architectures that are embedded
}

// Error says what to do.
func (e *NotBuiltError) Error() string {
	if len(e.Have) == 0 {
		return "this build has no workshop-init embedded: run `make build` and use bin/workshop"
	}
	return fmt.Sprintf("this build has no workshop-init for linux/%s embedded (only for %s): run `make build` and use bin/workshop",
		e.Arch, strings.Join(e.Have, ", "))
}

// A Set is a number of embedded programs by architecture. The zero Set is not
// usable; [Default] is the one of this build.
type Set struct {
	files fs.FS // workshop-init-linux-ARCH.zst at the root

	mu     sync.Mutex
	loaded map[string]*program
}

type program struct {
	data   []byte
	digest string
}

// NewSet reads compressed programs from the root of files.
func NewSet(files fs.FS) *Set { return &Set{files: files} }

// Default is what this build carries.
func Default() *Set { return defaultSet() }

var defaultSet = sync.OnceValue(func() *Set {
	sub, err := fs.Sub(embedded, "bin")
	if err != nil {
		panic(err) // a constant name
	}
	return NewSet(sub)
})

// Binary returns the static workshop-init for linux on arch (a GOARCH), or a
// [NotBuiltError]. The caller must not change the bytes.
func Binary(arch string) ([]byte, error) { return Default().Binary(arch) }

// Digest returns the SHA-256 of the program in hex.
func Digest(arch string) (string, error) { return Default().Digest(arch) }

// VolumeName names the tool volume of the program by its content.
func VolumeName(arch string) (string, error) { return Default().VolumeName(arch) }

// Binary is [Binary] for this set.
func (s *Set) Binary(arch string) ([]byte, error) {
	p, err := s.load(arch)
	if err != nil {
		return nil, err
	}
	return p.data, nil
}

// Digest is [Digest] for this set.
func (s *Set) Digest(arch string) (string, error) {
	p, err := s.load(arch)
	if err != nil {
		return "", err
	}
	return p.digest, nil
}

// VolumeName is [VolumeName] for this set.
func (s *Set) VolumeName(arch string) (string, error) {
	p, err := s.load(arch)
	if err != nil {
		return "", err
	}
	return "workshop-init-" + p.digest[:24], nil
}

func (s *Set) load(arch string) (*program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.loaded[arch]; p != nil {
		return p, nil
	}
	packed, err := fs.ReadFile(s.files, FileName(arch))
	if err != nil {
		return nil, &NotBuiltError{Arch: arch, Have: s.archs()}
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxSize), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("unpack workshop-init: %w", err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack workshop-init for linux/%s: %w", arch, err)
	}
	sum := sha256.Sum256(data)
	p := &program{data: data, digest: hex.EncodeToString(sum[:])}
	if s.loaded == nil {
		s.loaded = map[string]*program{}
	}
	s.loaded[arch] = p
	return p, nil
}

func (s *Set) archs() []string {
	var have []string
	for _, arch := range []string{"amd64", "arm64"} {
		if _, err := fs.Stat(s.files, FileName(arch)); err == nil {
			have = append(have, arch)
		}
	}
	return have
}

// FileName is the name of the compressed program for an architecture.
func FileName(arch string) string { return "workshop-init-linux-" + arch + ".zst" }

package image

import (
	"errors"
	"fmt"

	"github.com/llmdo/workshop/internal/image/reference"
)

// Image is an unpacked image of a [Store].
type Image struct {
	// Ref is what it was asked for by.
	Ref reference.Ref
	// ID is the digest of its configuration, "sha256:…", as Docker's.
	ID string
	// RootFS is the absolute directory with its files, whole and read-only by
	// convention: several workers and workshops share it.
	RootFS string
	Config Config
	// Size is what its files hold, in bytes.
	Size int64
}

// Config is the part of an image's configuration that a worker takes. An
// image's ENTRYPOINT and CMD are not run (B12).
type Config struct {
	Env        []string `json:"env,omitempty"`         // KEY=VALUE
	WorkingDir string   `json:"working_dir,omitempty"` // absolute and clean, or empty
	User       string   `json:"user,omitempty"`        // as written: names are in its own /etc/passwd
	Volumes    []string `json:"volumes,omitempty"`     // absolute, clean, sorted
}

// Policy says when a registry is asked. Layouts and archives are always read
// anew: nothing of them is pulled.
type Policy string

// The policies, as in Compose.
const (
	Missing Policy = "missing" // when the store hasn't it; "" too
	Never   Policy = "never"
	Always  Policy = "always" // unpacked again only if it is another one
)

// Progress is told how far a Get has come: bytes of total (0: not known), and
// what is being done. It may be nil, and is called from one goroutine at a time.
type Progress func(current, total int64, detail string)

// Options are what a store needs to know of the machine. The zero value works.
type Options struct {
	// Arch is the wanted architecture as GOARCH; empty: this program's.
	Arch string
	// Lookup reads the environment, for DOCKER_CONFIG; nil: none.
	Lookup func(string) (string, bool)
	// Limits of what is unpacked; fields that are 0 have their default.
	Limits Limits
}

// NotStoredError says that an image isn't in the store and may not be pulled.
type NotStoredError struct{ Ref reference.Ref }

// Error says what to do.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("image %s is not in the store, and pull is never: set pull: missing", e.Ref)
}

// ErrUnsupported is returned where images can't be unpacked: only Linux has
// what it needs.
var ErrUnsupported = errors.New("images are unpacked on Linux only")

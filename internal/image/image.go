package image

import (
	"errors"
	"fmt"

	"github.com/llmdo/workshop/internal/image/reference"
)

// Image is an unpacked image of a [Store].
type Image struct {
	// Ref is the requested reference.
	Ref reference.Ref
	// ID is the digest of its configuration, "sha256:…", the same as Docker's.
	ID string
	// RootFS is the absolute directory with its files, complete and read-only by
	// convention: several workers and workshops share it.
	RootFS string
	Config Config
	// Size is the total size of its files, in bytes.
	Size int64
}

// Config is the part of an image's configuration that a worker uses. An image's
// ENTRYPOINT and CMD are not run (B12).
type Config struct {
	Env        []string `json:"env,omitempty"`         // KEY=VALUE
	WorkingDir string   `json:"working_dir,omitempty"` // absolute and clean, or empty
	User       string   `json:"user,omitempty"`        // as written; names are those of its own /etc/passwd
	Volumes    []string `json:"volumes,omitempty"`     // absolute, clean, sorted
}

// Policy is a pull policy for registries. Layouts and archives are always read again,
// as they are local, unless the reference has their hash.
type Policy string

// The policies, as in Compose.
const (
	Missing Policy = "missing" // if the store doesn't have it; also ""
	Never   Policy = "never"
	Always  Policy = "always" // unpacked again only if it has changed
)

// Progress is called with the progress of a Get: current of total bytes (0: unknown),
// and the current activity. It may be nil, and is called from one goroutine at a time.
type Progress func(current, total int64, detail string)

// Options are the options of a store. The zero value is ready for use.
type Options struct {
	// Arch is the wanted architecture as GOARCH; empty: this program's.
	Arch string
	// Lookup returns variables of the environment, for DOCKER_CONFIG; nil: none.
	Lookup func(string) (string, bool)
	// Limits of unpacking; zero fields mean the default.
	Limits Limits
}

// NotStoredError means that an image isn't in the store and may not be pulled.
type NotStoredError struct{ Ref reference.Ref }

// Error says what to do.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("image %s is not in the store, and pull is never: set pull: missing", e.Ref)
}

// ErrUnsupported is returned on systems other than Linux, where images can't be
// unpacked.
var ErrUnsupported = errors.New("images are unpacked on Linux only")

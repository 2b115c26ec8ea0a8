package process

import (
	"errors"
	"path/filepath"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/promise"
)

// kind is the engine's name.
const kind = promise.Process

// Options says where the engine keeps what.
type Options struct {
	// StateDir holds a directory for each project, CacheDir workshop-init; both
	// absolute. Empty: there is no home directory, an error.
	StateDir, CacheDir string
	// DataDir holds what sessions reach of their own; empty: StateDir, or for
	// root, whose home nobody else enters, [RootData].
	DataDir string
	// Version is the program's, for display.
	Version string
	// Init is the set of workshop-init programs; nil: the embedded one.
	Init *initimage.Set
}

// RootData is where the workers of root have their own directories: they run as
// another user.
const RootData = "/var/lib/workshop/process"

func (o *Options) check() error {
	if !filepath.IsAbs(o.StateDir) || !filepath.IsAbs(o.CacheDir) {
		return errors.New("process mode needs a place for its state: set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME")
	}
	return nil
}

package namespace

import (
	"errors"
	"path/filepath"

	"github.com/llmdo/workshop/internal/initimage"
)

// Options says where the engine keeps what, and what its caller chose.
type Options struct {
	// StateDir holds a directory for each project, CacheDir workshop-init and
	// images; both absolute. Empty: there is no home directory, an error.
	StateDir, CacheDir string
	// Version is the program's, for display.
	Version string
	// Lookup reads the environment; nil: nothing is set.
	Lookup func(string) (string, bool)
	// WithoutLimits goes on where the machine enforces no limits of memory, cpu
	// and processes (B5). Where it does, they are enforced all the same.
	WithoutLimits bool
	// Project is the one that the engine is asked about: where its supervisor
	// lives, what that can enforce counts, and not where the caller is. Empty: none.
	Project string
	// Init is the set of workshop-init programs; nil: the embedded one.
	Init *initimage.Set
}

func (o *Options) check() error {
	if !filepath.IsAbs(o.StateDir) || !filepath.IsAbs(o.CacheDir) {
		return errors.New("the namespace engine needs a place for its state: set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME")
	}
	return nil
}

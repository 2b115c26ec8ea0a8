package namespace

import (
	"errors"
	"path/filepath"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

// Options has the engine's directories, and the caller's choices.
type Options struct {
	// StateDir holds a directory for each project, CacheDir workshop-init and
	// images; both are absolute. Empty is an error: there is no home directory.
	StateDir, CacheDir string
	// Compared notes what was compared with what was asked for.
	Compared engine.Compared
	// Version is the program's, for display.
	Version string
	// Lookup returns variables of the environment; nil: none is set.
	Lookup func(string) (string, bool)
	// WithoutLimits accepts that the machine can't enforce limits of memory, cpu
	// and processes (B5). If it can, they are still enforced.
	WithoutLimits bool
	// Attached: a supervisor that is started ends with this process, however that
	// ends, and everything that it runs with it.
	Attached bool
	// Project is the project that Info is about: if it has a supervisor, the limits
	// are those of the supervisor, not of the caller. Empty: none.
	Project string
	// Say gets a line about where workers are; nil: nobody reads it.
	Say func(string)
	// Init is the set of workshop-init programs; nil: the embedded one.
	Init *initimage.Set
}

func (o *Options) check() error {
	if !filepath.IsAbs(o.StateDir) || !filepath.IsAbs(o.CacheDir) {
		return errors.New("the namespace engine needs a directory for its state: set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME")
	}
	return nil
}

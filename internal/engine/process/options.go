package process

import (
	"errors"
	"path/filepath"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/promise"
)

// kind is the engine's name.
const kind = promise.Process

// Options has the engine's directories.
type Options struct {
	// StateDir holds a directory for each project, CacheDir workshop-init; both
	// are absolute. Empty is an error: there is no home directory.
	StateDir, CacheDir string
	// DataDir holds the sessions' own directories; empty: StateDir, or [RootData]
	// for root, whose home others can't enter.
	DataDir string
	// Version is the program's, for display.
	Version string
	// Init is the set of workshop-init programs; nil: the embedded one.
	Init *initimage.Set
}

// RootData holds the directories of root's workers, which run as another user.
const RootData = "/var/lib/workshop/process"

func (o *Options) check() error {
	if !filepath.IsAbs(o.StateDir) || !filepath.IsAbs(o.CacheDir) {
		return errors.New("process mode needs a place for its state: set HOME, or XDG_STATE_HOME and XDG_CACHE_HOME")
	}
	return nil
}

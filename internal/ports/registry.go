package ports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

const (
	// dirName is the registry's directory: beside it a NAME.lock is a project's.
	dirName  = "ports"
	fileName = "leases.json"
	lockName = "lock"
	// maxFile bounds the file in bytes.
	maxFile = 8 << 20
	// lockPoll is how often a waiting command looks again: the lock is held for
	// milliseconds.
	lockPoll = 10 * time.Millisecond
)

// Registry has the leases of one user.
type Registry struct{ dir string }

// In returns the registry in the user's state directory.
func In(stateDir string) Registry { return Registry{filepath.Join(stateDir, dirName)} }

// Path is the registry's file.
func (r Registry) Path() string { return filepath.Join(r.dir, fileName) }

// Leases returns all leases. It takes no lock: the file is replaced as a whole. A file
// that isn't the caller's alone to write is a [FileError], as is one that has no leases:
// whoever wrote it would choose what is published where.
func (r Registry) Leases() ([]Lease, error) {
	for _, path := range []string{r.dir, r.Path()} {
		if err := own(path); err != nil {
			return nil, err
		}
	}
	b, err := boundedfile.Read(r.Path(), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Lease
	if err == nil {
		all, err = parse(b)
	}
	if err != nil {
		return nil, &FileError{Path: r.Path(), Err: fmt.Errorf("the port leases in %s can't be read (%w): remove the file to give them all up", r.Path(), err), Do: "rm " + shellquote.Quote(r.Path())}
	}
	return all, nil
}

// Change replaces the leases by what change returns, while no other command does.
func (r Registry) Change(ctx context.Context, change func([]Lease) ([]Lease, error)) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := own(r.dir); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(r.dir, lockName), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return fmt.Errorf("lock the port leases: %w", err)
	}
	defer lock.Close()
	before, err := r.Leases()
	if err != nil {
		return err
	}
	after, err := change(slices.Clone(before))
	if err != nil || slices.Equal(before, after) {
		return err
	}
	b, err := format(after)
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("the port leases would have %d bytes, more than %d: give some up with `workshop prune`", len(b), maxFile)
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(r.Path(), b, 0o600)
}

package ports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
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

// Leases returns all leases. It takes no lock: the file is replaced as a whole.
func (r Registry) Leases() ([]Lease, error) {
	path := filepath.Join(r.dir, fileName)
	b, err := boundedfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Lease
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(&all)
	}
	for i := range all {
		if dir, quoted := strconv.Unquote(all[i].Dir); quoted == nil {
			all[i].Dir = dir
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the port leases in %s can't be read (%w): remove the file to give them all up", path, err)
	}
	return all, nil
}

// Change replaces the leases by what change returns, while no other command does.
func (r Registry) Change(ctx context.Context, change func([]Lease) ([]Lease, error)) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
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
	for i := range after { // JSON has no other bytes; an absolute path has no quote first
		if !utf8.ValidString(after[i].Dir) {
			after[i].Dir = strconv.QuoteToASCII(after[i].Dir)
		}
	}
	b, err := json.Marshal(after)
	if err == nil && len(b) >= maxFile {
		err = fmt.Errorf("the port leases would have %d bytes, more than %d: give some up with `workshop prune`", len(b), maxFile)
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(r.dir, fileName), append(b, '\n'), 0o600)
}

// Free reports whether a number may be given to a port.
type Free func(Key, uint16) bool

// With returns the leases with one for each key, and the numbers by key: that of its
// lease, or a chosen one. A lease that isn't used yet is exchanged if it isn't free and
// not held by its own project; held may be nil.
func With(leases []Lease, keys []Key, free Free, held func(uint16) bool) (all []Lease, numbers map[Key]uint16, err error) {
	all, numbers = slices.Clone(leases), make(map[Key]uint16, len(keys))
	taken, at := make(map[uint16]bool, len(all)), make(map[Key]int, len(all))
	for i, l := range all {
		taken[l.Port], at[l.Key] = true, i
	}
	for _, k := range keys {
		i, leased := at[k]
		if leased && (all[i].Used || free(k, all[i].Port) || held != nil && held(all[i].Port)) {
			numbers[k] = all[i].Port
			continue
		}
		n, err := choose(k, taken, func(n uint16) bool { return free(k, n) })
		if err != nil {
			return nil, nil, err
		}
		if !leased {
			i, all = len(all), append(all, Lease{Key: k})
			at[k] = i
		}
		all[i].Port, numbers[k], taken[n] = n, n, true
	}
	return all, numbers, nil
}

// Use marks the leases of keys as used, and gives up those of other ports of the same
// projects.
func Use(leases []Lease, dir, project string, keys []Key) []Lease {
	leases = slices.DeleteFunc(leases, func(l Lease) bool {
		return l.Dir == dir && l.Project == project && !slices.Contains(keys, l.Key)
	})
	for i := range leases {
		leases[i].Used = leases[i].Used || slices.Contains(keys, leases[i].Key)
	}
	return leases
}

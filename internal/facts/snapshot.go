package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"syscall"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// Snapshot is what the files were that programs of the host run or believe
// later and that a mount can't hold (B8): by absolute path a digest, or "dir"
// for a protected directory.
type Snapshot map[string]string

// Change is a difference between two snapshots.
type Change struct {
	Path string
	Kind ChangeKind
}

// ChangeKind says what happened to a file.
type ChangeKind string

// The kinds of changes.
const (
	Changed ChangeKind = "changed"
	New     ChangeKind = "new"
	Removed ChangeKind = "removed"
)

// snapshotFile is where `up` keeps the snapshot: in the runtime directory,
// which no worker sees.
const snapshotFile = "protected.json"

// maxHashed bounds what is read of one file; its size counts in full.
const maxHashed = 16 << 20

// TakeSnapshot looks at everything below the writable mounts of a project with
// facts. `up` takes one before it starts, ps and down take another and
// compare.
func TakeSnapshot(ctx context.Context, c *compose.Compiled) (Snapshot, error) {
	s := Snapshot{}
	own := ownFiles(c)
	var errs []error
	for _, root := range writableRoots(c) {
		info, err := os.Stat(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !info.IsDir() {
			errs = append(errs, err, s.file(root))
			continue
		}
		t := tree{ctx: ctx, root: root, lenient: true}
		t.visit = func(rel string, d fs.DirEntry) bool {
			full := filepath.Join(root, filepath.FromSlash(rel))
			switch {
			case d.IsDir():
				if compose.IsProtected(d.Name()) {
					s[full] = "dir"
				}
				return entered(rel)
			case watched(rel) || own[full]:
				errs = append(errs, s.file(full))
			}
			return false
		}
		errs = append(errs, t.walk())
	}
	return s, errors.Join(errs...)
}

// file hashes one file. A symlink is hashed as what it says: the file behind
// it may be anywhere.
func (s Snapshot) file(name string) (err error) {
	for range 10 { // somebody may just save it
		if err = s.fileNow(name); !errors.Is(err, errReplaced) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

var errReplaced = errors.New("it is replaced again and again")

func (s Snapshot) fileNow(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h := sha256.New()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "symlink %s", to)
	case info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // by now it may be a FIFO
		if errors.Is(err, fs.ErrPermission) {
			s[name] = "unreadable"
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
			return errors.Join(err, errReplaced)
		}
		fmt.Fprintf(h, "%d %o ", info.Size(), info.Mode().Perm()&0o111)
		if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
			return err
		}
	default:
		fmt.Fprintf(h, "special %v", info.Mode().Type())
	}
	s[name] = hex.EncodeToString(h.Sum(nil))
	return nil
}

// Compare tells what is different in after, in order of path.
func (s Snapshot) Compare(after Snapshot) []Change {
	var out []Change
	for p, digest := range after {
		if old, ok := s[p]; !ok {
			out = append(out, Change{p, New})
		} else if old != digest {
			out = append(out, Change{p, Changed})
		}
	}
	for p := range s {
		if _, ok := after[p]; !ok {
			out = append(out, Change{p, Removed})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out
}

// Save keeps the snapshot in a runtime directory.
func (s Snapshot) Save(runtimeDir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(runtimeDir, snapshotFile), data, 0o600, -1, -1)
}

// LoadSnapshot reads what [Snapshot.Save] kept; nil without an error where
// there is none.
func LoadSnapshot(runtimeDir string) (Snapshot, error) {
	data, err := os.ReadFile(filepath.Join(runtimeDir, snapshotFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Snapshot
	return s, json.Unmarshal(data, &s)
}

// writableRoots lists the sources of writable binds, outermost ones only.
func writableRoots(c *compose.Compiled) []string {
	var all []string
	for name, role := range c.Roles {
		if role != compose.RoleWorker {
			continue
		}
		for _, v := range c.Project.Services[name].Volumes {
			if v.Type == types.VolumeTypeBind && !v.ReadOnly {
				all = append(all, filepath.Clean(v.Source))
			}
		}
	}
	slices.Sort(all)
	var roots []string
	for _, p := range all {
		if !slices.ContainsFunc(roots, func(r string) bool { return p == r || len(below([]string{p}, r)) > 0 }) {
			roots = append(roots, p)
		}
	}
	return roots
}

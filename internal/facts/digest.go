package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// maxHashed bounds the bytes hashed of one file, and of all of a snapshot. Beyond
// that a file is identified by its metadata; its ctime can't be set.
const (
	maxHashed    = 16 << 20
	maxHashedAll = 256 << 20
)

// file hashes one file by its path.
func (s Snapshot) file(name string) error {
	dir, err := boundedfile.Open(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	left := int64(maxHashedAll)
	digest, err := digestAt(dir, filepath.Base(name), &left)
	if digest != "" {
		s[name] = digest
	}
	return err
}

// digestAt returns the digest of a file of a directory; "" if there is none. For a
// symlink it hashes the target path. left is how much may be read, and is reduced.
func digestAt(dir *os.File, name string, left *int64) (digest string, err error) {
	for range 10 { // an editor may be saving it
		if digest, err = digestNow(dir, name, left); !errors.Is(err, errReplaced) {
			return digest, err
		}
	}
	return "", fmt.Errorf("%s: %w", filepath.Join(dir.Name(), name), err)
}

var errReplaced = errors.New("it keeps being replaced")

func digestNow(dir *os.File, name string, left *int64) (string, error) {
	info, err := lstatAt(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, fs.ErrPermission):
		return unreadable, nil // the directory can't be entered
	case err != nil:
		return "", err
	}
	h := sha256.New()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := readlinkAt(dir, name)
		if err != nil {
			return "", errors.Join(err, errReplaced)
		}
		fmt.Fprintf(h, "symlink %s", to)
	case info.Mode().IsRegular():
		f, err := openFileAt(dir, name)
		if errors.Is(err, fs.ErrPermission) {
			return unreadable, nil
		}
		if err != nil {
			return "", errors.Join(err, errReplaced)
		}
		defer f.Close()
		if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
			return "", errors.Join(err, errReplaced)
		}
		fmt.Fprint(h, regularHead(info.Size(), info.Mode()))
		if info.Size() > min(maxHashed, *left) {
			fmt.Fprint(h, stateOf(info))
			break
		}
		n, err := io.Copy(h, io.LimitReader(f, maxHashed))
		if err != nil {
			return "", err
		}
		*left -= n
	default:
		fmt.Fprintf(h, "special %v", info.Mode().Type())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// regularHead is what the digest of a regular file has in front of its content.
func regularHead(size int64, mode fs.FileMode) string {
	return fmt.Sprintf("%d %o ", size, mode.Perm()&0o111)
}

// digestOf returns the digest of a regular file that has a text, with the mode of the one
// that is there; "" if none is.
func digestOf(name string, text []byte) string {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	h := sha256.New()
	fmt.Fprint(h, regularHead(int64(len(text)), info.Mode()))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// Pin makes files what they were when their texts were read: a worker may have changed
// them since, and the texts are what counts. It returns what symbolic links lead to from
// their names.
func (s Snapshot) Pin(texts map[string][]byte) (ends map[string]string) {
	ends = map[string]string{}
	for name, text := range texts {
		if real, err := filepath.EvalSymlinks(name); err == nil && real != name {
			ends[name], name = real, real
		}
		digest, named, byName := strings.Cut(s[name], byConfig)
		if is := digestOf(name, text); digest != "" && is != "" {
			if s[name] = is; byName {
				s[name] += byConfig + named
			}
		}
	}
	return ends
}

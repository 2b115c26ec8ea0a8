// Package hostlink finds and follows symbolic links in paths of this machine.
package hostlink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// OpenDir opens a directory below another one, and makes it and those on the way if that is
// meant. None of them is a symbolic link: what is in a project's directory may have been
// put there by others, and lead to another part of it. rel must not contain "..".
func OpenDir(root *os.Root, rel string, create bool) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(rel)), "/") {
		if err != nil {
			return nil, err
		}
		above := dir
		dir, err = openPart(above, part, create)
		_ = above.Close()
	}
	return dir, err
}

func openPart(root *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", filepath.Join(root.Name(), name))
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s was changed by another program", dir.Name())
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// Below returns the first symbolic link on the path from dir down to rel, which must not
// contain ".."; "" if there is none. The error is that of a component that can't be
// read, such as a missing one.
func Below(dir, rel string) (link string, err error) {
	at := dir
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if part == "" {
			continue
		}
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return at, nil
		}
	}
	return "", nil
}

// most links are followed, as Linux does (MAXSYMLINKS, include/linux/namei.h).
// The kernel doesn't bound the expanded length, as it doesn't keep the text; our bound
// is only exceeded by somebody who tries to waste time.
const (
	most      = 40
	mostParts = 1024
	mostBytes = 4096
)

// errTooLong is the error of a path with more components, or a longer text.
var errTooLong = fmt.Errorf("by its symbolic links it has more than %d parts or %d bytes", mostParts, mostBytes)

// Follow resolves the symbolic links of an absolute path. A component that doesn't exist
// or can't be read counts as not being a link, as it would be created there. A path with
// more links than Linux follows is returned unchanged. The error is that of a path too
// long to be resolved here, which Linux might resolve. each, unless nil, is called with
// every component before it is read.
func Follow(path string, each func(part string)) (end string, err error) {
	end, _, err = Until(path, func(part string) bool {
		if each != nil {
			each(part)
		}
		return false
	})
	return end, err
}

// Until is [Follow] up to a component for which stop returns true, and returns that and
// what was to follow below it, with links and ".." as they are.
func Until(path string, stop func(part string) bool) (end, below string, err error) {
	at, rest := start(path)
	for links, parts := 0, 0; len(rest) > 0; parts++ {
		if parts > mostParts || len(at) > mostBytes {
			return path, "", errTooLong
		}
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, name)
		if stop(at) {
			return at, strings.Join(rest, "/"), nil
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > most {
			return path, "", nil
		}
		more := strings.Split(filepath.ToSlash(to), "/")
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at, more = start(to)
		}
		rest = append(more, rest...)
	}
	return at, "", nil
}

// start returns the root of an absolute path, and the components below it.
func start(path string) (root string, parts []string) {
	root = filepath.VolumeName(path) + string(filepath.Separator)
	return root, strings.Split(filepath.ToSlash(strings.TrimPrefix(path, root)), "/")
}

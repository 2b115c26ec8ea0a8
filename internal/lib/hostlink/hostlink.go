// Package hostlink looks for symbolic links on the way to a path of this machine,
// and follows them.
package hostlink

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Below returns the first part of the way from dir down to rel, which has no "..",
// that is a symbolic link; "" if none is. The error is that of a part that can't be
// looked at, such as one that doesn't exist.
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
// Its length is no bound, as the kernel keeps no text of a way; ours is what nobody
// has who isn't after the time that it takes.
const (
	most      = 40
	mostParts = 1024
	mostBytes = 4096
)

// errTooLong is that of a way with more parts, or a longer text.
var errTooLong = fmt.Errorf("by its symbolic links it has more than %d parts or %d bytes", mostParts, mostBytes)

// Follow returns where an absolute path leads, its symbolic links followed. What
// doesn't exist, or can't be looked at, is taken as no link: who makes it makes it
// there. Through more links than Linux follows nobody gets anywhere: the path itself.
// The error is that of a way that is too long to be followed here, which Linux might
// follow. each, unless nil, is called with every part of the way, before it is
// looked at.
func Follow(path string, each func(part string)) (end string, err error) {
	at, rest := start(path)
	for links, parts := 0, 0; len(rest) > 0; parts++ {
		if parts > mostParts || len(at) > mostBytes {
			return path, errTooLong
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
		if each != nil {
			each(at)
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > most {
			return path, nil
		}
		more := strings.Split(filepath.ToSlash(to), "/")
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at, more = start(to)
		}
		rest = append(more, rest...)
	}
	return at, nil
}

// start is the root of an absolute path, and the parts below it.
func start(path string) (root string, parts []string) {
	root = filepath.VolumeName(path) + string(filepath.Separator)
	return root, strings.Split(filepath.ToSlash(strings.TrimPrefix(path, root)), "/")
}

// Package hostlink looks for symbolic links on the way to a path of this machine.
package hostlink

import (
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

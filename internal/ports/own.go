package ports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// FileError means that the registry's file, or its directory, isn't used.
type FileError struct {
	Path string
	Err  error
	// Do is a command that helps.
	Do string
}

// Error says what is wrong with it.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// own refuses a file or directory that is a link, another user's, or that others may
// write. One that isn't there is fine.
func own(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	quoted := shellquote.Quote(path)
	if err != nil {
		return &FileError{path, err, "ls -ld " + quoted}
	}
	uid, _, known := fileowner.Of(info)
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return &FileError{path, fmt.Errorf("%s is a symbolic link: the port leases are kept in the file itself", path), "rm " + quoted}
	case !known: // this system has no such owners and modes
		return nil
	case uid != os.Geteuid():
		return &FileError{path, fmt.Errorf("%s belongs to the user %d, not to you (%d)", path, uid, os.Geteuid()), fmt.Sprintf("sudo chown %d %s", os.Geteuid(), quoted)}
	case mode.Perm()&0o022 != 0:
		return &FileError{path, fmt.Errorf("%s can be changed by others (mode %04o)", path, mode.Perm()), "chmod go-w " + quoted}
	}
	return nil
}

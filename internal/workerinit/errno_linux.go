package workerinit

import (
	"errors"
	"io/fs"
	"syscall"
)

// unwrapErrno removes the path from an error for a message that already has it.
func unwrapErrno(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

func statT(info fs.FileInfo) (*syscall.Stat_t, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

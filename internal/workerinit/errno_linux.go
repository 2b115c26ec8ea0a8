package workerinit

import (
	"errors"
	"io/fs"
	"syscall"
)

// unwrapErrno leaves the path out of an error whose message names it already.
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

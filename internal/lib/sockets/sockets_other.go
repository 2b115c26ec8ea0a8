//go:build !linux

package sockets

import (
	"context"
	"errors"
	"runtime"
)

// All returns an error wrapping [errors.ErrUnsupported].
func All() ([]Socket, error) {
	return nil, errUnsupported
}

var errUnsupported = unsupportedError{}

type unsupportedError struct{}

func (unsupportedError) Error() string { return "sockets can't be seen on " + runtime.GOOS }
func (unsupportedError) Unwrap() error { return errors.ErrUnsupported }

// Owners returns none.
func Owners(context.Context, map[uint64]bool) map[uint64]Owner { return nil }

// FirstUnprivileged returns 1: this system lets everybody listen.
func FirstUnprivileged() uint16 { return 1 }

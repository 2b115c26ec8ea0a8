//go:build unix

package cli

import "syscall"

// ownerMay lets the owner use what is made here: with a umask that takes that
// away too, no one could write to a directory or remove it.
func ownerMay() { syscall.Umask(syscall.Umask(0) &^ 0o700) }

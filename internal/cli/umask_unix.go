//go:build unix

package cli

import "syscall"

// ownerMay lets the owner use what is made here: with a umask that takes that
// away too, a directory would be one that nobody can write to or remove.
func ownerMay() { syscall.Umask(syscall.Umask(0) &^ 0o700) }

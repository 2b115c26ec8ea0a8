//go:build unix && !linux

package approval

import (
	"os"

	"golang.org/x/sys/unix"
)

// fread is FREAD of sys/fcntl.h: what was received.
const fread = 1

// flushInput throws away what was typed and isn't read (tcflush, TCIFLUSH).
func flushInput(f *os.File) error {
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, fread)
}

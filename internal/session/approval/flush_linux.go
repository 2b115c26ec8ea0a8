package approval

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput throws away what was typed and isn't read (tcflush, TCIFLUSH).
func flushInput(f *os.File) error {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

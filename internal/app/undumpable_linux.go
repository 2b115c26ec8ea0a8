package app

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// undumpable keeps the memory of this process from core files, and from other processes of
// its user: prctl(2), PR_SET_DUMPABLE, and setrlimit(2), RLIMIT_CORE.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("RLIMIT_CORE: %w", err)
	}
	return nil
}

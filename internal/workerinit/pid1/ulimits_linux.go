package pid1

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Lower lowers this process's limits to those of a worker, and so those of all that it
// starts. An engine sets them as well, but not each one: podman without root ignored them
// until version 5 (pkg/api/handlers/compat/containers_create.go).
func Lower() error {
	for resource, most := range map[int]uint64{unix.RLIMIT_NOFILE: Files, unix.RLIMIT_SIGPENDING: Signals} {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return fmt.Errorf("getrlimit: %w", err)
		}
		if l.Cur <= most && l.Max <= most {
			continue
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: min(l.Cur, most), Max: min(l.Max, most)}); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	return nil
}

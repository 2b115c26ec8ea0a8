package guest

import (
	"fmt"
	"os"
	"time"
)

const (
	// inodes says how many the kernel has, and how many of these are free
	// (Documentation/admin-guide/sysctl/fs.rst).
	inodes = "/proc/sys/fs/inode-nr"
	// dropCaches makes the kernel forget files that aren't used
	// (Documentation/admin-guide/sysctl/vm.rst).
	dropCaches = "/proc/sys/vm/drop_caches"
	// lookEvery is how often they are counted.
	lookEvery = 20 * time.Millisecond
)

// forget lets the kernel forget files before it knows as many as the file server lets it:
// else it does so for want of memory alone, and until then no name that it doesn't know is
// found.
func forget(nodes int64) {
	if nodes <= 0 {
		return
	}
	for range time.Tick(lookEvery) {
		text, err := os.ReadFile(inodes)
		if err != nil {
			return
		}
		if tooMany(string(text), nodes) {
			_ = os.WriteFile(dropCaches, []byte("3"), 0)
		}
	}
}

// tooMany reports whether more than half of the files are known that may be.
func tooMany(inodes string, nodes int64) bool {
	var all, free int64
	if _, err := fmt.Sscan(inodes, &all, &free); err != nil {
		return false
	}
	return all-free > nodes/2
}

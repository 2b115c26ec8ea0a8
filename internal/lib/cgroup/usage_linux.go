package cgroup

import (
	"os"
	"strconv"
	"strings"
)

// MemoryUsage returns what the processes of the group in a directory use in bytes, page
// cache that can be dropped not counted; false if the directory isn't one of the memory
// controller.
func MemoryUsage(dir string) (int64, bool) {
	inactive := "inactive_file"
	b, err := os.ReadFile(dir + "/memory.current")
	if err != nil {
		inactive = "total_" + inactive // v1
		b, err = os.ReadFile(dir + "/memory.usage_in_bytes")
	}
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, false
	}
	if cache, ok := field(read(dir+"/memory.stat"), inactive); ok && cache <= n {
		n -= cache
	}
	return n, true
}

// MemoryUsages returns the use of the groups below directories, by name. Directories
// that can't be read are skipped.
func MemoryUsages(dirs []string) map[string]int64 {
	out := map[string]int64{}
	for _, dir := range dirs {
		if !exists(dir+"/memory.current") && !exists(dir+"/memory.usage_in_bytes") {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if n, ok := MemoryUsage(dir + "/" + e.Name()); ok && e.IsDir() {
				out[e.Name()] += n
			}
		}
	}
	return out
}

//go:build linux

package reaper

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// environment: a program can tell the kernel that its environment is as large
// as its memory. Who looks for its mark must not read all of that.
func environment(*Reaper) {
	const size = 1 << 30
	from, _, no := syscall.Syscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
	require(no == 0, "mmap: %v", no)
	b, err := os.ReadFile("/proc/self/stat")
	must(err)
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	number := func(i int) uint64 { // as proc_pid_stat(5) counts
		n, err := strconv.ParseUint(fields[i-3], 10, 64)
		must(err)
		return n
	}
	// struct prctl_mm_map
	m := struct {
		at       [11]uint64
		auxv     uint64
		auxvSize uint32
		exe      int32
	}{exe: -1, at: [11]uint64{number(26), number(27), number(45), number(46), number(47), number(47), number(28), number(48), number(49), uint64(from), uint64(from) + size}}
	const setMap = 14 // PR_SET_MM_MAP
	_, _, no = syscall.Syscall6(unix.SYS_PRCTL, unix.PR_SET_MM, setMap, uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), 0, 0)
	require(no == 0 || no == unix.EINVAL, "PR_SET_MM_MAP: %v", no) // EINVAL: a kernel without it
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mark := Mark(os.Getpid())
	runtime.ReadMemStats(&after)
	require(mark == "", "%q", mark)
	require(after.TotalAlloc-before.TotalAlloc < 1<<20, "%d bytes were allocated", after.TotalAlloc-before.TotalAlloc)
}

package container

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// stage is a container being made, in its own PID 1.
type stage struct {
	first, status int // descriptors, see Main
	order         *order
	c             *spec.Container

	newNetwork chan namespace // nil: none is made
	anyIP      bool           // a room that may lack netfilter
	instead    instead        // of netfilter
	outside    int            // the machine's root directory
	null       int            // the machine's /dev/null
	root       place
	proc_      int // the container's /proc
	sys_       int // its /sys; -1: none
	devDir     int // its /dev
	// places are the mounts of the spec so far. own are the mounts in which mount
	// points may be created: the root and the container's tmpfs.
	places []place
	own    map[uint64]bool
	// writable are the mounts to which Landlock allows writing.
	writable []int
}

// place is a mount of the container, by the descriptor of its root directory (or
// file).
type place struct {
	target    string
	fd        int
	id        uint64 // STATX_MNT_ID
	recursive bool   // others may be mounted in it
}

// itself clears everything inherited from the caller, and makes the process not
// dumpable.
func (s *stage) itself() error {
	unix.Umask(0o022)
	if err := ordinaryPolicy(); err != nil {
		return err
	}
	// Before the next step, after which the file belongs to root.
	if s.c.OOMScore != 0 {
		if err := os.WriteFile("/proc/self/oom_score_adj", fmt.Appendf(nil, "%d", s.c.OOMScore), 0); err != nil {
			return fmt.Errorf("oom_score_adj %d: %w", s.c.OOMScore, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	// The native architecture, with randomized addresses.
	if _, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, 0, 0, 0); errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	// Made here, not by the clone: its root is this process's group, which only now
	// is the container's.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil && err != unix.EINVAL {
		return fmt.Errorf("a cgroup namespace: %w", err)
	}
	return nil
}

// ordinaryPolicy resets a real-time policy (sched(7)) inherited from the caller of
// `up`. A nice value is kept.
func ordinaryPolicy() error {
	policy, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	if errno == 0 && (policy == unix.SCHED_FIFO || policy == unix.SCHED_RR) {
		var priority int32
		_, _, errno = unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_NORMAL, uintptr(unsafe.Pointer(&priority)))
	}
	if errno != 0 {
		return fmt.Errorf("the scheduling policy: %w", errno)
	}
	return nil
}

// open opens a path with O_PATH, subject to the resolve flags.
func open(dir int, p string, flags, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(dir, p, &how)
		// EAGAIN: after a concurrent rename the kernel isn't sure where .. leads.
		if err == unix.EINTR || err == unix.EAGAIN && try < 100 {
			continue
		}
		return fd, err
	}
}

// openSource opens a path of the machine. It refuses a symbolic link in it: whoever
// can put one there could expose anything to the container.
func (s *stage) openSource(p string) (fd int, dir bool, err error) {
	fd, err = open(s.outside, strings.TrimPrefix(p, "/"), 0, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_BENEATH)
	if err != nil {
		return -1, false, explain(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fd, true, nil
	case unix.S_IFREG, unix.S_IFSOCK:
		return fd, false, nil
	}
	return -1, false, fmt.Errorf("not a directory, file or socket")
}

// explain explains an error of path resolution or of a mount.
func explain(err error) error {
	switch err {
	case unix.ELOOP:
		return fmt.Errorf("the path contains a symbolic link: use the path that it leads to")
	case unix.ENOSYS:
		return fmt.Errorf("this kernel is too old: Linux 5.12 is needed")
	}
	return err
}

func mountID(fd int) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return 0, err
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return 0, fmt.Errorf("this kernel is too old: Linux 5.12 is needed")
	}
	return st.Mnt_id, nil
}

package container

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// Hidden and read-only paths of /proc and /sys: Docker's (moby/oci/defaults.go),
// some that identify the machine, and pressure triggers, which no limit counts.
var (
	maskedProcFiles = []string{"interrupts", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug"}
	maskedProcDirs  = []string{"asound", "acpi", "scsi"}
	readOnlyProc    = []string{"bus", "fs", "irq", "pressure", "sys", "sysrq-trigger"}
	maskedSysDirs   = []string{"firmware", "devices/virtual/powercap"}
)

const kernelFS = noSetuid | noDevice | noExec

// special attaches a mount to a directory of the root, which must not be a symbolic
// link.
func (s *stage) special(fd int, target string) error {
	name := strings.TrimPrefix(target, "/")
	if err := unix.Mkdirat(s.root.fd, name, 0o755); err != nil && err != unix.EEXIST {
		return err
	}
	at, err := open(s.root.fd, name, unix.O_DIRECTORY, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return explain(err)
	}
	defer unix.Close(at)
	return move(fd, at)
}

// proc mounts the container's own /proc while the old one is visible, which the
// kernel requires of an unprivileged user.
func (s *stage) proc() error {
	fd, err := newMount("proc", kernelFS)
	if err == nil {
		err = s.special(fd, "/proc")
	}
	if err != nil {
		if err == unix.EPERM {
			err = fmt.Errorf("%w (parts of this machine's /proc are hidden, as in a container: without root a new one can't be mounted)", err)
		}
		return fmt.Errorf("/proc: %w", err)
	}
	s.proc_ = fd
	return nil
}

func (s *stage) masks() error {
	empty := -1
	if err := s.mask(s.proc_, "/proc", maskedProcFiles, maskedProcDirs, &empty); err != nil {
		return err
	}
	for _, name := range readOnlyProc {
		at, err := open(s.proc_, name, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return fmt.Errorf("/proc/%s: %w", name, err)
		}
		fd, err := clone(at, kernelFS|readOnly, false)
		if err == nil {
			err = move(fd, at)
			unix.Close(fd)
		}
		unix.Close(at)
		if err != nil {
			return fmt.Errorf("/proc/%s read-only: %w", name, err)
		}
	}
	return nil
}

// mask mounts /dev/null over files and an empty directory over directories, if they
// exist.
func (s *stage) mask(dir int, where string, files, dirs []string, empty *int) error {
	do := func(name string, directory bool) error {
		at, err := open(dir, name, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
		if err == unix.ENOENT {
			return nil
		}
		if err != nil {
			return err
		}
		defer unix.Close(at)
		if !directory {
			fd, err := clone(s.null, noSetuid|noExec|readOnly, false)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return move(fd, at)
		}
		if *empty < 0 {
			if *empty, err = newMount("tmpfs", kernelFS|readOnly, number("size", 4096), number("nr_inodes", 1), mode(0o555)); err != nil {
				return err
			}
			return move(*empty, at) // the others are clones of it
		}
		fd, err := clone(*empty, kernelFS|readOnly, false)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return move(fd, at)
	}
	for i, name := range append(append([]string{}, files...), dirs...) {
		if err := do(name, i >= len(files)); err != nil {
			return fmt.Errorf("hide %s/%s: %w", where, name, err)
		}
	}
	return nil
}

// throttles returns the directories below /sys with times of cpu throttling, from
// which computations of others can be inferred. Virtual machines usually have none.
func throttles() []string {
	found, _ := filepath.Glob(throttled)
	for i, dir := range found {
		found[i] = strings.TrimPrefix(dir, "/sys/")
	}
	return found
}

var throttled = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle"

// sys mounts /sys, which shows the mounter's network namespace. A container in the
// machine's gets none; nor does one of an unprivileged user if parts of the machine's
// /sys are hidden.
func (s *stage) sys() error {
	s.sys_ = -1
	if s.c.Network.Mode == spec.NetHost {
		return nil
	}
	fd, err := newMount("sysfs", kernelFS|readOnly)
	if err == unix.EPERM {
		return nil
	}
	if err == nil {
		err = s.special(fd, "/sys")
	}
	if err != nil {
		return fmt.Errorf("/sys: %w", err)
	}
	s.sys_ = fd
	empty := -1
	if err := s.mask(fd, "/sys", nil, append(throttles(), maskedSysDirs...), &empty); err != nil {
		return err
	}
	return s.cgroups()
}

// cgroups mounts the container's own group.
func (s *stage) cgroups() error {
	var made []int
	for _, m := range s.order.Cgroup {
		var options []option
		for o := range strings.SplitSeq(m.Options, ",") {
			if key, value, _ := strings.Cut(o, "="); key != "" {
				options = append(options, option{key, value})
			}
		}
		fd, err := newMount(m.Type, kernelFS, options...)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Target, err)
		}
		// On /sys/fs/cgroup, or on a directory created in the mount there.
		base, rel := s.sys_, "fs/cgroup"
		if m.Target != cgroupDir {
			if len(made) == 0 || path.Dir(m.Target) != cgroupDir {
				return fmt.Errorf("%s: the mount point doesn't exist", m.Target)
			}
			base, rel = made[0], path.Base(m.Target)
			if err := unix.Mkdirat(base, rel, 0o755); err != nil && err != unix.EEXIST {
				return fmt.Errorf("%s: %w", m.Target, err)
			}
		}
		at, err := open(base, rel, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
		if err == nil {
			err = move(fd, at)
			unix.Close(at)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Target, err)
		}
		made = append(made, fd)
	}
	for _, fd := range made {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: readOnly}); err != nil {
			return fmt.Errorf("%s read-only: %w", cgroupDir, err)
		}
	}
	return nil
}

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a group with its limits. Its methods may be called at the
// same time, Remove by itself.
type Group struct {
	name   string
	parent *Parent
	dirs   []made
	slow   bool // tests: as if there were no cgroup.kill
}

type made struct {
	dir string
	place
}

// Add puts a process into the group, with all its threads. The number is the
// process's in the pid namespace of the caller. After an error it may be in
// some of the hierarchies: it must not run on.
func (g *Group) Add(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("cgroup: %d is not a process id", pid)
	}
	for _, d := range g.dirs {
		if err := write(d.dir+"/cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) text(controller, v2, v1 string) (string, bool) {
	for _, d := range g.dirs {
		if d.uses(controller) {
			file := v1
			if d.v2 {
				file = v2
			}
			b, err := os.ReadFile(d.dir + "/" + file)
			return string(b), err == nil
		}
	}
	return "", false
}

// OOMKills is how often the kernel ended a process of the group for its memory;
// -1: not known (v1 before Linux 4.13, or no memory limit here).
func (g *Group) OOMKills() int64 {
	if text, ok := g.text(Memory, "memory.events", "memory.oom_control"); ok {
		if n, ok := field(text, "oom_kill"); ok {
			return n
		}
	}
	return -1
}

// Mounts shows the group, and no other, to a container: at /sys/fs/cgroup, to
// be mounted nosuid, nodev, noexec, and made read-only when all of them are
// there (the first may have to get directories for the others).
//
// They show the group of the process that made the cgroup namespace, so that
// has to be made (unshare) by a process that is in the group already. A clone
// with both CLONE_INTO_CGROUP and CLONE_NEWCGROUP is too early: copy_cgroup_ns
// takes the parent's group.
func (g *Group) Mounts() []Mount {
	const top = "/sys/fs/cgroup"
	if len(g.dirs) == 1 && g.dirs[0].v2 {
		return []Mount{{"cgroup2", "", top}}
	}
	list := []Mount{{"tmpfs", "mode=755,size=64k", top}}
	for _, d := range g.dirs {
		if d.v2 {
			list = append(list, Mount{"cgroup2", "", path.Join(top, "unified")})
			continue
		}
		// A hierarchy is had by naming all that it has; where it is seen is by
		// the controllers that are limited, one mount for each.
		for _, c := range d.controllers {
			list = append(list, Mount{"cgroup", strings.Join(d.mounted, ","), path.Join(top, c)})
		}
	}
	return list
}

// removeWithin: how long a group is waited for. Processes that have been
// killed leave it a moment later.
const removeWithin = 2 * time.Second

// Remove removes the group. A group with processes isn't removed:
// the error says so after 2 s. It may be called again.
func (g *Group) Remove() error {
	var errs []error
	left := g.dirs[:0]
	deadline := time.Now().Add(removeWithin)
	for _, d := range g.dirs {
		if err := rmdir(d.dir, deadline); err != nil {
			errs = append(errs, err)
			left = append(left, d)
		}
	}
	g.dirs = left
	if len(left) == 0 && g.parent != nil {
		for _, pl := range g.parent.places { // fails while another group is there
			_ = unix.Rmdir(path.Join(pl.dir, groupsDir))
		}
	}
	return errors.Join(errs...)
}

func rmdir(dir string, deadline time.Time) error {
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(deadline) {
			list, _ := pids(dir)
			return fmt.Errorf("cgroup: rmdir %s: %w (processes in it: %d)", dir, err, len(list))
		}
		time.Sleep(wait)
	}
}

// all are the processes in the group, in whichever hierarchy.
func (g *Group) all() ([]int, error) {
	var list []int
	for _, d := range g.dirs {
		p, err := pids(d.dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cgroup: %w", err)
		}
		list = append(list, p...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

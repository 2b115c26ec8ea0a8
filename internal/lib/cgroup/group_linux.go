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

// Add moves a process into the group, with all its threads. pid is in the caller's pid
// namespace. After an error it may be in some of the hierarchies and must not continue.
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

// OOMKills returns how many processes of the group were OOM-killed; -1: unknown (v1
// before Linux 4.13, or no memory limit here).
func (g *Group) OOMKills() int64 {
	if text, ok := g.text(Memory, "memory.events", "memory.oom_control"); ok {
		if n, ok := field(text, "oom_kill"); ok {
			return n
		}
	}
	return -1
}

// Mounts returns the mounts by which a container sees only its own group: at
// /sys/fs/cgroup, to be mounted nosuid, nodev, noexec, and made read-only once all are
// mounted (the first may need directories for the others).
//
// They show the group of the process that created the cgroup namespace, so it must be
// created (unshare) by a process already in the group. A clone with both
// CLONE_INTO_CGROUP and CLONE_NEWCGROUP is too early: copy_cgroup_ns uses the parent's
// group.
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
		// A hierarchy is mounted by naming all its controllers; there is one mount
		// for each limited controller.
		for _, c := range d.controllers {
			list = append(list, Mount{"cgroup", strings.Join(d.mounted, ","), path.Join(top, c)})
		}
	}
	return list
}

// removeWithin bounds the wait in Remove: killed processes leave a group slightly later.
const removeWithin = 2 * time.Second

// Remove removes the group. If it still has processes after 2 s, that is an error, and
// Remove may be called again.
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
		for _, pl := range g.parent.places { // fails while there are other groups
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

// all returns the processes in the group in any hierarchy.
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

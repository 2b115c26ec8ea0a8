package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killWithin bounds the wait in Kill. A killed process that doesn't end is stuck in the
// kernel.
const killWithin = 10 * time.Second

// Kill kills every process in the group, and waits until none is left, 10 s at
// most. v2 does it in one step from Linux 5.14 on (cgroup.kill). Otherwise the
// group's limit of processes becomes 0 first, so that nothing in it can have
// children: it can't be used any more.
func (g *Group) Kill() error {
	oneStep := false
	for _, d := range g.dirs {
		if d.v2 && !g.slow && write(d.dir+"/cgroup.kill", "1") == nil {
			oneStep = len(g.dirs) == 1
		}
		if d.uses(PIDs) && !oneStep {
			_ = write(d.dir+"/pids.max", "0")
		}
	}
	deadline := time.Now().Add(killWithin)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		list, err := g.all()
		if err != nil || len(list) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroup: %d processes of %s don't end: %v", len(list), g.name, list)
		}
		if !oneStep {
			if err := g.signal(list); err != nil {
				return err
			}
		}
		time.Sleep(wait)
	}
}

// signal kills these processes, and none with a reused PID: it opens pidfds, then checks
// again who is in the group.
func (g *Group) signal(list []int) error {
	fds := map[int]int{}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, pid := range list {
		if pid == 0 {
			return fmt.Errorf("cgroup: %s has a process outside of this pid namespace, which can't be killed from here", g.name)
		}
		// EINVAL: it has just been reaped, and a process of its group or session still has
		// the number (kernel/pid.c, pidfd_prepare).
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			fds[pid] = fd
		} else if err != unix.ESRCH && err != unix.EINVAL {
			return fmt.Errorf("cgroup: pidfd of %d: %w", pid, err)
		}
	}
	again, err := g.all()
	if err != nil {
		return err
	}
	for pid, fd := range fds {
		if !slices.Contains(again, pid) {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("cgroup: kill %d: %w", pid, err)
		}
	}
	return nil
}

// CleanStaleIn removes the groups whose names begin with the prefix, which
// should end with what separates it from the rest: "project-". They were left
// by a supervisor that was killed. The directories are what Dirs said to that
// one: where groups are made depends on who makes them, and on v1 the next
// command of the same person may see other ones. With kill, what runs in the
// groups is killed; without, a group that isn't empty stays and is an error that
// names it. A directory that is no control group's is an error.
func CleanStaleIn(dirs []string, prefix string, kill bool) error {
	if prefix == "" {
		return errors.New("cgroup: CleanStale of everything")
	}
	found := map[string]*Group{}
	for _, dir := range dirs {
		entries, err := groupsOf(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
				continue
			}
			g := found[e.Name()]
			if g == nil {
				g = &Group{name: e.Name()}
				found[e.Name()] = g
			}
			own := filepath.Join(dir, e.Name())
			pl := place{dir: filepath.Dir(dir), v2: exists(own + "/cgroup.controllers")}
			if exists(own + "/pids.max") {
				pl.controllers = []string{PIDs}
			}
			g.dirs = append(g.dirs, made{own, pl})
		}
	}
	var errs []error
	for _, g := range found {
		list, err := g.all()
		if err == nil && len(list) > 0 {
			if !kill {
				err = fmt.Errorf("cgroup: %s still has %d processes: %v", g.name, len(list), list)
			} else {
				err = g.Kill()
			}
		}
		if err == nil {
			err = g.Remove()
		}
		errs = append(errs, err)
	}
	for _, dir := range dirs { // fails while there are other groups
		_ = unix.Rmdir(dir)
	}
	return errors.Join(errs...)
}

// groupsOf lists a directory once returned by Dirs, which may no longer exist.
func groupsOf(dir string) ([]os.DirEntry, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err == nil && (filepath.Base(dir) != groupsDir || st.Type != unix.CGROUP_SUPER_MAGIC && st.Type != unix.CGROUP2_SUPER_MAGIC) {
		err = errors.New("not a directory of our control groups")
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup: %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cgroup: %w", err)
	}
	return entries, nil
}

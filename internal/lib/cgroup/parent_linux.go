package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	groupsDir  = "workshop"         // below a place: holds the groups
	callersDir = "workshop-callers" // v2: the processes that a delegated group had
)

// New makes a group and sets its limits, before any process is in it. The name is one
// path element (ValidName) and must be free: for an existing one the error is
// fs.ErrExist, since its processes may be another's.
//
// A limit that can't be set is an error; the group is then removed.
func (p *Parent) New(name string, l Limit) (*Group, error) {
	if err := ValidName(name); err != nil {
		return nil, err
	}
	if err := p.check(l); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var g *Group
	var err error
	for range 10 {
		if err = p.prepare(); err == nil {
			g, err = p.make(name, l)
		}
		if !errors.Is(err, errGone) {
			break
		}
	}
	return g, err
}

// errGone: another process's last Remove has removed the directory for groups.
var errGone = errors.New("gone")

// check returns an error if a requested limit can't be enforced.
func (p *Parent) check(l Limit) error {
	if l.MemoryBytes < 0 || l.SwapBytes < 0 || l.CPUs < 0 || l.PIDs < 0 || l.CPUs != l.CPUs {
		return fmt.Errorf("cgroup: a limit is negative: %+v", l)
	}
	asked := map[string]bool{Memory: l.MemoryBytes > 0, Swap: l.MemoryBytes > 0, CPU: l.CPUs > 0, PIDs: l.PIDs > 0}
	var missing []Missing
	for _, m := range p.can.missing() {
		if asked[m.Limit] {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		return &Unavailable{Missing: missing, Do: p.do}
	}
	return nil
}

// Prepare makes the directories that hold the groups and, on v2, enables their
// controllers, for which a delegated group's own processes are moved to a leaf. New
// does it too, but inside a pid namespace it can't see the processes to move, so the
// starter of such a process calls Prepare first.
func (p *Parent) Prepare() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.prepare()
	for range 10 {
		if !errors.Is(err, errGone) {
			break
		}
		err = p.prepare()
	}
	return err
}

// prepare makes the directory for groups in each place.
func (p *Parent) prepare() error {
	for _, pl := range p.places {
		dir := filepath.Join(pl.dir, groupsDir)
		if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
			return fmt.Errorf("cgroup: mkdir %s: %w", dir, err)
		}
		if !pl.v2 {
			continue
		}
		for _, d := range []string{pl.dir, dir} {
			if err := handOn(d, pl.controllers); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%w: %w", errGone, err)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// handOn enables a group's controllers for its children.
func handOn(dir string, controllers []string) error {
	file := dir + "/cgroup.subtree_control"
	now, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	var add []string
	for _, c := range controllers {
		if !slices.Contains(strings.Fields(string(now)), c) {
			add = append(add, "+"+c)
		}
	}
	if len(add) == 0 {
		return nil
	}
	value := strings.Join(add, " ")
	err = write(file, value)
	// EBUSY: it has processes. New ones may start while others are moved.
	for round := 0; errors.Is(err, unix.EBUSY) && round < 20; round++ {
		if e := moveAway(dir); e != nil {
			return fmt.Errorf("cgroup: %s has processes of its own, which have to leave before its children can be limited: %w", dir, e)
		}
		err = write(file, value)
	}
	return err
}

// moveAway moves the processes of a group into a leaf of it.
func moveAway(dir string) error {
	leaf := filepath.Join(dir, callersDir)
	if err := unix.Mkdir(leaf, 0o755); err != nil && err != unix.EEXIST {
		return fmt.Errorf("mkdir %s: %w", leaf, err)
	}
	list, err := pids(dir)
	if err != nil {
		return err
	}
	for _, pid := range list {
		if pid == 0 {
			return fmt.Errorf("one of them is outside of this pid namespace (Prepare wasn't asked)")
		}
		if err := write(leaf+"/cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func (p *Parent) make(name string, l Limit) (_ *Group, err error) {
	g := &Group{name: name, parent: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Remove())
		}
	}()
	for _, pl := range p.places {
		dir := filepath.Join(pl.dir, groupsDir, name)
		if err := unix.Mkdir(dir, 0o755); err == unix.ENOENT {
			return nil, fmt.Errorf("cgroup: mkdir %s: %w", dir, errGone)
		} else if err != nil {
			return nil, fmt.Errorf("cgroup: mkdir %s: %w", dir, err)
		}
		g.dirs = append(g.dirs, made{dir, pl})
		if err := setLimits(dir, pl, l, p.swap); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// pids returns the PIDs of a group in this pid namespace; 0 is a process outside of it.
func pids(dir string) ([]int, error) {
	b, err := os.ReadFile(dir + "/cgroup.procs")
	if errors.Is(err, unix.ENODEV) { // removed after it was opened
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	var list []int
	for line := range strings.Lines(string(b)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs: %w", dir, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// write is a single write(2), as control group files require; again after a signal, which
// interrupts some of them before anything has changed.
func write(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err == nil {
		for _, err = unix.Write(fd, []byte(value)); err == unix.EINTR; {
			_, err = unix.Write(fd, []byte(value))
		}
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("cgroup: write %q to %s: %w", value, path, err)
	}
	return nil
}

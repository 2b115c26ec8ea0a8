package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Parent is the directories in which this process may make groups: one on v2, one per
// hierarchy on v1, both on a hybrid machine.
type Parent struct {
	places []place
	can    Limits
	do     string
	swap   bool // the machine has some

	mu sync.Mutex // one New at a time
}

// place is an existing group below which ours are made.
type place struct {
	dir         string
	v2          bool
	controllers []string // that are used here: of memory, cpu and pids
	mounted     []string // v1: all of the hierarchy
}

var wanted = []string{Memory, CPU, PIDs}

// Find finds the directories in which this process may make groups, and changes nothing.
// It returns a Parent if some limit can be enforced; Require reports whether all can.
// Otherwise the error is *Unavailable, or has the file of /proc that can't be read. It
// must be called while /proc and the control groups are visible, before a change of the
// root.
func Find() (*Parent, error) {
	mountinfo, self, swaps, err := readProc()
	if err != nil {
		return nil, err
	}
	return find(mountinfo, self, swaps, os.Geteuid()).usable()
}

// FindHere is Find for a process alone in a group of version 2 that was delegated to it,
// which no mark needs to say: groups are made there or nowhere.
func FindHere() (*Parent, error) {
	mountinfo, self, swaps, err := readProc()
	if err != nil {
		return nil, err
	}
	return findAt(mountinfo, self, swaps, os.Geteuid(), here).usable()
}

// FindInScope is FindHere for a process that is moved into a scope of the caller's
// systemd later: it reports what can be limited there.
func FindInScope() (*Parent, error) {
	mountinfo, self, swaps, err := readProc()
	if err != nil {
		return nil, err
	}
	uid := os.Geteuid()
	return find(mountinfo, inScope(self, uid), swaps, uid).usable()
}

// readProc reads what there is to know of this process's groups.
func readProc() (mountinfo, self, swaps string, err error) {
	var text [3]string
	for i, file := range []string{"/proc/self/mountinfo", "/proc/self/cgroup", "/proc/swaps"} {
		b, err := os.ReadFile(file)
		if err != nil && (i < 2 || !errors.Is(err, os.ErrNotExist)) { // a kernel without swap has no list of it
			return "", "", "", fmt.Errorf("cgroup: %w", err)
		}
		text[i] = string(b)
	}
	return text[0], text[1], text[2], nil
}

// usable returns a parent with places, else why it has none.
func (p *Parent) usable() (*Parent, error) {
	if len(p.places) == 0 {
		return nil, p.Require()
	}
	return p, nil
}

// inScope is /proc/self/cgroup as a scope of the user's systemd has it: below
// user@UID.service, which is in the user's slice.
func inScope(self string, uid int) string {
	own, own1 := parseSelf(self)
	slice := fmt.Sprintf("/user-%d.slice", uid)
	before, _, found := strings.Cut(own+"/", slice+"/")
	if !found {
		before = "/user.slice"
	}
	out := fmt.Sprintf("0::%s%s/user@%d.service/app.slice/workshop.scope\n", before, slice, uid)
	for controller, group := range own1 {
		out += "1:" + controller + ":" + group + "\n"
	}
	return out
}

// Can returns the limits that can be enforced, and why others can't.
func (p *Parent) Can() Limits { return p.can }

// InUnit reports whether groups are made in a unit that systemd, which says so from 251
// on, delegates to this process: there nothing else is.
func (p *Parent) InUnit() bool {
	manager := fmt.Sprintf("user@%d.service", os.Geteuid())
	for _, pl := range p.places {
		if pl.v2 && filepath.Base(pl.dir) != manager && delegated(pl.dir, os.Geteuid()) {
			return true
		}
	}
	return false
}

// Require returns *Unavailable when one of the limits can't be enforced.
func (p *Parent) Require() error {
	if m := p.can.missing(); len(m) > 0 {
		return &Unavailable{Missing: m, Do: p.do}
	}
	return nil
}

// String names the directories below which groups are made.
func (p *Parent) String() string {
	var dirs []string
	for _, pl := range p.places {
		dirs = append(dirs, pl.dir)
	}
	return strings.Join(dirs, " ")
}

// Dirs are the directories that hold the groups, for CleanStaleIn. They exist
// from Prepare on.
func (p *Parent) Dirs() []string {
	var dirs []string
	for _, pl := range p.places {
		dirs = append(dirs, filepath.Join(pl.dir, groupsDir))
	}
	return dirs
}

func find(mountinfo, self, swaps string, uid int) *Parent {
	return findAt(mountinfo, self, swaps, uid, candidates)
}

// findAt is find with the groups of version 2 to try, best first.
func findAt(mountinfo, self, swaps string, uid int, try func(point, own string, uid int) []string) *Parent {
	mounts := parseMounts(mountinfo)
	own2, own1 := parseSelf(self)
	p := &Parent{swap: hasSwap(swaps), can: Limits{Why: map[string]string{}}}
	var onV2 []string
	for _, c := range wanted {
		pl, found, err := placeV1(mounts, own1, c, uid)
		switch {
		case !found:
			onV2 = append(onV2, c)
		case err != nil:
			p.can.Why[c] = err.Error()
		default:
			p.add(pl, c)
		}
	}
	if len(onV2) > 0 {
		pl, err := placeV2(mounts, own2, onV2, uid, try)
		for _, c := range onV2 {
			switch {
			case err != nil:
				p.can.Why[c] = err.Error()
			case !slices.Contains(pl.controllers, c):
				p.can.Why[c] = fmt.Sprintf("%s/cgroup.controllers doesn't have %s", pl.dir, c)
			default:
				p.add(place{dir: pl.dir, v2: true}, c)
			}
		}
	}
	p.lookForSwap()
	for c, ok := range map[string]*bool{Memory: &p.can.Memory, CPU: &p.can.CPU, PIDs: &p.can.PIDs, Swap: &p.can.Swap} {
		*ok = p.can.Why[c] == ""
	}
	p.do = advice(p, mounts, own1, uid)
	return p
}

func (p *Parent) add(pl place, controller string) {
	for i := range p.places {
		if p.places[i].dir == pl.dir {
			p.places[i].controllers = append(p.places[i].controllers, controller)
			return
		}
	}
	pl.controllers = []string{controller}
	p.places = append(p.places, pl)
}

// placeV1 is the own group in the controller's hierarchy. found: there is one,
// so v2 can't have the controller.
func placeV1(mounts []mount, own map[string]string, controller string, uid int) (pl place, found bool, err error) {
	err = fmt.Errorf("/proc/self/cgroup doesn't name its group")
	for _, m := range mounts {
		if m.v2 || !slices.Contains(m.controllers, controller) {
			continue
		}
		found = true
		group, ok := own[controller]
		if !ok {
			continue
		}
		dir, ok := m.dirOf(group)
		if !ok {
			err = fmt.Errorf("the own group %s is outside of the mount at %s", group, m.point)
			continue
		}
		dir = trimOwn(dir)
		if err = writable(dir, uid); err == nil {
			return place{dir: dir, mounted: m.controllers}, true, nil
		}
	}
	return place{}, found, err
}

// placeV2 is the first group that has all controllers, or the one that has
// most of them.
func placeV2(mounts []mount, own string, want []string, uid int, try func(point, own string, uid int) []string) (place, error) {
	err := fmt.Errorf("no control groups are mounted")
	best := place{}
	for _, m := range mounts {
		if !m.v2 {
			continue
		}
		dir, inside := m.dirOf(own)
		if own == "" || !inside {
			err = fmt.Errorf("the own group %s is outside of the mount at %s", own, m.point)
			continue
		}
		for _, c := range try(m.point, trimOwn(dir), uid) {
			if e := usableV2(c, uid); e != nil {
				if best.dir == "" {
					err = e
				}
				continue
			}
			has := slices.DeleteFunc(strings.Fields(read(c+"/cgroup.controllers")), func(s string) bool { return !slices.Contains(want, s) })
			if best.dir == "" || len(has) > len(best.controllers) {
				best, err = place{dir: c, v2: true, controllers: has}, nil
			}
		}
	}
	return best, err
}

// candidates are the groups to try, best first (package comment).
func candidates(point, own string, uid int) []string {
	var marked, up []string
	for dir := own; ; dir = filepath.Dir(dir) {
		if delegated(dir, uid) {
			marked = append(marked, dir)
		}
		up = append(up, dir)
		if dir == point || len(dir) <= len(point) {
			break
		}
	}
	if uid == 0 {
		return append(marked, point)
	}
	return append(marked, up...)
}

// here is the own group alone.
func here(_, own string, _ int) []string { return []string{own} }

// delegated: the caller's by a manager's word, which then leaves what is below
// alone. systemd says so in an attribute that everybody may read from 251 on.
func delegated(dir string, uid int) bool {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || int(st.Uid) != uid {
		return false
	}
	value := make([]byte, 8)
	n, err := unix.Lgetxattr(dir, "user.delegate", value)
	return err == nil && string(value[:n]) == "1" || filepath.Base(dir) == fmt.Sprintf("user@%d.service", uid)
}

// usableV2: children can be made, controllers handed on to them, and processes
// moved between them, for which the kernel wants this group's cgroup.procs
// writable too.
func usableV2(dir string, uid int) error {
	for _, file := range []string{dir, dir + "/cgroup.procs", dir + "/cgroup.subtree_control"} {
		if err := writable(file, uid); err != nil {
			return err
		}
	}
	if t := strings.TrimSpace(read(dir + "/cgroup.type")); t != "" && t != "domain" {
		return fmt.Errorf("%s is %s (cgroup.type), which has no memory controller", dir, t)
	}
	return nil
}

func writable(path string, uid int) error {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
	switch err {
	case nil:
		return nil
	case unix.EROFS:
		return fmt.Errorf("%s is mounted read-only", path)
	case unix.ENOENT:
		return fmt.Errorf("%s doesn't exist", path)
	case unix.EACCES, unix.EPERM:
		return fmt.Errorf("%s isn't writable for uid %d", path, uid)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// trimOwn: a process that was moved by an earlier workshop, or that runs beside
// its groups, looks from where it was before.
func trimOwn(dir string) string {
	if base := filepath.Base(dir); base == callersDir || base == groupsDir {
		return filepath.Dir(dir)
	}
	return dir
}

// lookForSwap: whether no swap beyond memory can be enforced. Where swap isn't
// accounted for, it holds on a machine that has none.
func (p *Parent) lookForSwap() {
	if why := p.can.Why[Memory]; why != "" {
		p.can.Why[Swap] = why
		return
	}
	if !p.swap {
		return
	}
	for _, pl := range p.places {
		if !slices.Contains(pl.controllers, Memory) {
			continue
		}
		file := "memory.memsw.limit_in_bytes"
		if pl.v2 {
			file = "memory.swap.max"
			// A root has no limits, and no controller no files: New finds out then.
			if !exists(pl.dir + "/memory.max") {
				return
			}
		}
		if !exists(pl.dir + "/" + file) {
			p.can.Why[Swap] = "the kernel doesn't account for swap (" + file + "), and this machine has some"
		}
	}
}

func exists(path string) bool { return unix.Access(path, unix.F_OK) == nil }

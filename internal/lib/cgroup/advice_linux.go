package cgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/procinfo"
)

// advice is what a person can do about the limits that are missing; "" when
// none is.
func advice(p *Parent, mounts []mount, own1 map[string]string, uid int) string {
	missing := p.can.missing()
	if len(missing) == 0 {
		return ""
	}
	var what []string
	add := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(what, s) {
			what = append(what, s)
		}
	}
	var v1dirs []string
	for _, m := range missing {
		if m.Limit == Swap {
			if p.can.Memory {
				add("Boot with swapaccount=1, or turn swap off: swapoff -a")
			}
			continue
		}
		mount, is1 := hierarchy(mounts, m.Limit)
		dir, _ := mount.dirOf(own1[m.Limit])
		switch {
		case mount.point == "":
			add("Mount control groups: mount -t cgroup2 none /sys/fs/cgroup")
		case mount.readOnly:
			add("Control groups are read-only here, as in a container: run outside of it")
		case is1 && uid != 0 && dir != "" && exists(dir):
			if !slices.Contains(v1dirs, dir) {
				v1dirs = append(v1dirs, dir)
			}
		case is1:
			add("The hierarchy at %s needs a look", mount.point)
		case len(p.places) > 0 && p.places[len(p.places)-1].v2:
			addController(add, p.places[len(p.places)-1].dir, m.Limit, uid)
		case uid != 0 && exists(fmt.Sprintf("%s/user.slice/user-%d.slice/user@%d.service", mount.point, uid, uid)):
			add("Start it in a group that systemd delegates: systemd-run --user --scope -p Delegate=yes -- workshop up")
		case uid != 0 && SystemdRuns():
			add("Start your systemd, which delegates control groups: `sudo loginctl enable-linger %s`", userName(uid))
		case uid != 0:
			add("As root, give this shell a group of its own: %s", delegateV2(mount.point, uid))
		default:
			add("The hierarchy at %s needs a look", mount.point)
		}
	}
	if len(v1dirs) > 0 {
		add("As root, give this shell groups of its own: %s", delegateV1(v1dirs, uid))
	}
	return strings.Join(append(what, without), ". ")
}

// hierarchy that has or could have the controller; v1 is true when it has.
func hierarchy(mounts []mount, controller string) (m mount, v1 bool) {
	for _, m := range mounts {
		if slices.Contains(m.controllers, controller) {
			return m, true
		}
	}
	for _, m := range mounts {
		if m.v2 {
			return m, false
		}
	}
	return mount{}, false
}

// addController: the group is ours, but wasn't given the controller.
func addController(add func(string, ...any), dir, controller string, uid int) {
	if uid != 0 && SystemdRuns() {
		add("Let systemd delegate it, then log in again: `%s`", DelegateBySystemd)
		return
	}
	add("As root, hand on the controller from the root of the hierarchy down to %s: write +%s to each cgroup.subtree_control above it", dir, controller)
}

// delegateV1 is a command for the caller's shell: $$ is expanded by it, not by
// root's.
func delegateV1(dirs []string, uid int) string {
	return fmt.Sprintf(`sudo sh -c 'for d in %s; do mkdir -p $d/u%d && chown %d $d/u%d && echo '$$' >$d/u%d/cgroup.procs; done'`,
		strings.Join(dirs, " "), uid, uid, uid, uid)
}

// delegateV2: the limits of the group itself stay root's.
func delegateV2(point string, uid int) string {
	return fmt.Sprintf(`sudo sh -c 'cd %s && echo +memory +cpu +pids >cgroup.subtree_control && mkdir -p u%d && cd u%d && chown %d . cgroup.procs cgroup.subtree_control && echo '$$' >cgroup.procs'`,
		point, uid, uid, uid)
}

// userName is the user's name for a command.
func userName(uid int) string {
	for line := range strings.Lines(read("/etc/passwd")) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == strconv.Itoa(uid) {
			return f[0]
		}
	}
	return "$USER" // of a directory service
}

// read is a small file's text; "" when it can't be read.
func read(path string) string { return procinfo.Read(path) }

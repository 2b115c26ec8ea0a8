package dialect

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

const onNamespaces = "run on namespaces: `workshop --engine namespace up`"

func podmanFindings(f Facts) []engine.Finding {
	out := []engine.Finding{
		{
			Promise: "B2", Name: "seccomp-file", Held: f.Local, Do: onNamespaces,
			Meaning: "the engine reads the seccomp profile from a file, so podman must be on this machine and not in a virtual one (podman machine)",
		},
		subordinateIDs(f),
		{
			Promise: "B6", Name: "cgroup-names", Held: f.CgroupVersion == "2", Accepted: f.CgroupV1,
			Meaning: "a worker doesn't see the names of its cgroups, which podman shows it on cgroups of version 1",
			Do:      onNamespaces + ", boot with cgroups of version 2, or accept it with `podman: {cgroup_v1: true}` in your settings file",
		},
	}
	if f.Rootless {
		out = append(out, networkHelper(f), afterLogout(f))
	}
	return append(out, podmanLimits(f)...)
}

// subordinateIDs are those of worker, room and guard.
func subordinateIDs(f Facts) engine.Finding {
	out := engine.Finding{Promise: "B4", Name: "subordinate-ids", Held: !f.Rootless || f.IDs >= mappedIDs, Meaning: "worker, room and guard have ids of their own"}
	if !out.Held {
		out.Meaning = fmt.Sprintf("without root podman needs %d ids of /etc/subuid and /etc/subgid, and has %d", mappedIDs, f.IDs)
		out.Do = "`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER && podman system migrate`, then start the service again"
	}
	return out
}

// networkHelper is about the guard, which is in a network of the engine.
func networkHelper(f Facts) engine.Finding {
	out := engine.Finding{Promise: "B24", Name: "network-helper", Held: f.NetworkHelper != "", Rooms: true, Meaning: "podman has a network without root, by " + f.NetworkHelper}
	if !out.Held {
		out.Meaning = "without root podman has no network for the guard: there is neither slirp4netns nor pasta"
		out.Do = "install one: `sudo apt-get install slirp4netns` or `sudo dnf install passt`"
	}
	return out
}

func afterLogout(f Facts) engine.Finding {
	out := engine.Finding{Name: "linger", Held: !f.EndsAtLogout, Meaning: "podman's containers go on after you log out"}
	if !out.Held {
		out.Meaning, out.Do = "podman's containers end when you log out", "let them go on: `loginctl enable-linger`"
	}
	return out
}

// podmanLimits are the limits that podman can't set here, each by its name (B5).
func podmanLimits(f Facts) (out []engine.Finding) {
	var lacks []string
	for _, c := range []struct {
		name string
		has  bool
	}{{"memory", f.Limits.Memory}, {"cpu", f.Limits.CPU}, {"pids", f.Limits.PIDs}} {
		if !c.has {
			lacks = append(lacks, c.name)
		}
	}
	why, do := "cgroup controllers not delegated to you: "+strings.Join(lacks, ", "), "let systemd delegate them, then log in again: `"+cgroup.DelegateBySystemd+"`"
	switch {
	case !f.Rootless:
		why = "cgroup controllers that podman does not have: " + strings.Join(lacks, ", ")
		do = "see which it has: `podman info --format '{{.Host.CgroupControllers}}'`"
	case f.CgroupVersion != "2":
		why = "without root podman sets no limits on cgroups of version 1"
		do = "boot with cgroups of version 2: `systemd.unified_cgroup_hierarchy=1` on the kernel's command line"
	case !f.Systemd:
		do = "let your systemd start podman, which delegates control groups: `systemctl --user enable --now podman.socket`"
	}
	for _, name := range lacks {
		out = append(out, engine.Finding{Promise: "B5", Name: name, Meaning: why, Do: do})
		if name == "memory" {
			out = append(out, engine.Finding{Promise: "B5", Name: "swap", Meaning: why, Do: do})
		}
	}
	return out
}

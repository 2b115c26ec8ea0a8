package dialect

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Without --read-only-tmpfs=false, which the API has no word for, podman mounts tmpfs of
// any size in these directories of a read-only root file system (B3; podman:
// pkg/specgen/generate/storage.go, addReadOnlyMounts).
var podmanWritable = []string{"/run", "/tmp", "/var/tmp"}

// closedTmpfs are the options of what is mounted there instead.
const closedTmpfs = "ro,nosuid,nodev,noexec,size=64k,mode=0755,notmpcopyup"

// Modes of files that podman reads by their path: the profile alone, or a worker too.
const (
	ownMode    fs.FileMode = 0o600
	workerMode fs.FileMode = 0o644
)

func podman(c Creation, f Facts) (*container.HostConfig, []File, error) {
	h := *c.Host
	var files []File
	file := func(kind, text string, mode fs.FileMode) string {
		files = append(files, File{Path: path.Join(f.Dir, kind+"-"+digest(text)), Text: text, Mode: mode})
		return files[len(files)-1].Path
	}
	if err := podmanRuntime(c, f); err != nil {
		return nil, nil, err
	}
	h.Runtime = ""
	if f.Rootless {
		if err := podmanRootless(&h, c, f); err != nil {
			return nil, nil, err
		}
	}

	// "seccomp=" is the path of a profile on the engine's machine.
	h.SecurityOpt = slices.Clone(h.SecurityOpt)
	for i, option := range h.SecurityOpt {
		if profile, ok := strings.CutPrefix(option, "seccomp="); ok && strings.HasPrefix(profile, "{") {
			h.SecurityOpt[i] = "seccomp=" + file("seccomp", profile, ownMode)
		}
	}
	if h.IpcMode == "" {
		h.IpcMode = container.IPCModePrivate // podman's default lets others join
	}
	podmanTmpfs(&h, append(slices.Clone(podmanWritable), machinesOwn(&h, f)...))
	h.Ulimits = podmanUlimits(h.Ulimits, f)
	if c.Role != compose.RoleGuard {
		// podman gives containers the machine's own entries with the machine's address, and
		// none without a network a resolv.conf.
		h.Mounts = slices.Clone(h.Mounts)
		for _, m := range []struct{ kind, text string }{{"hosts", c.Names.hosts()}, {"resolv.conf", c.Names.resolv()}} {
			h.Mounts = append(h.Mounts, mount.Mount{
				Type: mount.TypeBind, Source: file(m.kind, m.text, workerMode), Target: "/etc/" + m.kind, ReadOnly: true,
				BindOptions: &mount.BindOptions{NonRecursive: true, Propagation: mount.PropagationRPrivate},
			})
		}
	}
	return &h, files, nil
}

// mappedIDs is how many ids a room, a guard (65532) and a worker need.
const mappedIDs = 65536

// machinesOwn are directories that without root are the machine's own in a container, with
// what is mounted below them writable: the caller owns control groups, whose limits a worker
// with the same id would lift, and FUSE mounts (B3, B5). Who joins another container's
// network has the machine's /sys (podman: pkg/specgen/generate/oci_linux.go, canMountSys),
// others on cgroups of version 1 those.
func machinesOwn(h *container.HostConfig, f Facts) []string {
	switch {
	case f.Rootless && h.NetworkMode.IsContainer():
		return []string{"/sys"}
	case f.Rootless && f.CgroupVersion == "1":
		return []string{"/sys/fs/cgroup"}
	}
	return nil
}

// KeepID is podman's user namespace in which the caller has the same id (podman-run(1)).
const KeepID = "keep-id"

// podmanRootless keeps the caller's own id: it is the same in the worker, so that files
// belong to the caller (B4). All containers of a workshop have the user namespace of the
// container whose network namespace they join: the kernel lets no other one use that.
func podmanRootless(h *container.HostConfig, c Creation, f Facts) error {
	if own := fmt.Sprintf("%d:%d", f.UID, f.GID); c.Role == compose.RoleWorker && c.User != own {
		return &engine.RefusedError{
			Promise: "B4", Reason: fmt.Sprintf("%s: without root podman keeps no other user than yours, %s, and the worker's is %s", c.Service, own, c.User),
			Do: "remove `user`, or " + onNamespaces,
		}
	}
	h.UsernsMode = KeepID
	if mode := h.NetworkMode; mode.IsContainer() {
		h.UsernsMode = container.UsernsMode(mode)
	}
	return nil
}

// podmanUlimits adds those that podman would set to its own, which can be above what it
// may set: in a container it has no CAP_SYS_RESOURCE. Without root it ignores all until
// version 5 (podman: pkg/api/handlers/compat/containers_create.go), and a worker's PID 1
// lowers its own (package pid1).
func podmanUlimits(asked []*units.Ulimit, f Facts) []*units.Ulimit {
	if f.Rootless {
		return nil
	}
	out := slices.Clone(asked)
	for _, u := range []units.Ulimit{{Name: "nofile", Soft: f.Files, Hard: f.Files}, {Name: "nproc", Soft: f.Processes, Hard: f.Processes}} {
		if !slices.ContainsFunc(out, func(have *units.Ulimit) bool { return have.Name == u.Name }) {
			out = append(out, &u)
		}
	}
	return out
}

// podmanRuntime refuses another runtime than the one that podman runs: the API ignores it.
func podmanRuntime(c Creation, f Facts) error {
	if r := c.Host.Runtime; r != "" && r != f.DefaultRuntime {
		return &engine.RefusedError{
			Promise: "B30", Reason: fmt.Sprintf("%s: podman would run %s in place of runtime %s", c.Service, cmp.Or(f.DefaultRuntime, "its default runtime"), r),
			Do: "remove `runtime`, or use `--engine docker`",
		}
	}
	return nil
}

// podmanTmpfs leaves out the owner of a tmpfs, which podman has no option for: a worker has
// one uid, so that it is enough that all may write there. What the image has there isn't
// copied. Directories of closed get an empty one.
func podmanTmpfs(h *container.HostConfig, closed []string) {
	all := map[string]string{}
	for target, options := range h.Tmpfs {
		all[target] = podmanOptions(options)
	}
	var mounts []mount.Mount
	for _, m := range h.Mounts {
		if m.Type != mount.TypeTmpfs {
			mounts = append(mounts, m)
			continue
		}
		options := "nosuid,nodev,noexec"
		if o := m.TmpfsOptions; o != nil {
			options += fmt.Sprintf(",size=%d,mode=%04o", o.SizeBytes, uint32(o.Mode))
		}
		all[m.Target] = podmanOptions(options)
	}
	if h.Mounts = mounts; h.ReadonlyRootfs {
		for _, dir := range closed {
			_, known := all[dir]
			if !known && !slices.ContainsFunc(mounts, func(m mount.Mount) bool { return path.Clean(m.Target) == dir }) {
				all[dir] = closedTmpfs
			}
		}
	}
	h.Tmpfs = all
}

func podmanOptions(options string) string {
	var out []string
	owned := false
	for o := range strings.SplitSeq(options, ",") {
		key, _, _ := strings.Cut(o, "=")
		switch key {
		case "uid", "gid":
			owned = true
		default:
			out = append(out, o)
		}
	}
	if owned {
		out = slices.DeleteFunc(out, func(o string) bool { return strings.HasPrefix(o, "mode=") })
		out = append(out, "mode=1777")
	}
	return strings.Join(append(out, "notmpcopyup"), ",")
}

// podmanRefusal is about the whole engine.
func podmanRefusal(f Facts) error {
	if f.SELinux {
		return &engine.RefusedError{Reason: "SELinux is enforced in podman's containers, and no workshop has run there yet", Do: onNamespaces}
	}
	return nil
}

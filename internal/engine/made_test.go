package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/made"
)

// container is a worker in a room that is what was asked for, with what is known of it.
func container() (Asked, Known, *made.Report) {
	spaces := func(n string) map[string]string {
		out := map[string]string{"user": "user:[1]"}
		for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
			out[kind] = kind + ":[" + n + "]"
		}
		return out
	}
	const boot, version, all = "8b8e1d9c", "Linux version 6.1.0", "0 0 4294967295"
	a := Asked{
		Role: compose.RoleWorker, UID: "1000", GID: "1000", Shm: 64 << 20, Rlimits: map[string][2]uint64{"nofile": {4096, 4096}, "sigpending": {1024, 1024}, "nproc": {99, 99}},
		Limits: &made.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 256},
		Mounts: []AskedMount{
			{Target: "/work"}, {Target: "/work/.git", ReadOnly: true}, {Target: "/opt/workshop", ReadOnly: true},
			{Target: "/tmp", Size: 64 << 20, NoSetuid: true, NoDevice: true, NoExec: true},
		},
	}
	k := Known{
		Machine: &made.Kernel{BootID: boot, Version: version, UIDMap: all, GIDMap: all, Namespaces: spaces("1")},
		Room:    &made.Report{Kernel: made.Kernel{Namespaces: map[string]string{"net": "net:[2]"}}},
		GVisor:  []string{"--log-format=json", "--root=/run/x", "--log=/run/y", "--log-fd=3", "--host-uds=open", "--network=sandbox"},
	}
	const none = "0000000000000000"
	r := &made.Report{
		Kernel: made.Kernel{BootID: boot, Version: version, UIDMap: all, GIDMap: all, Namespaces: spaces("2")},
		Status: map[string]string{
			"Uid": "1000 1000 1000 1000", "Gid": "1000 1000 1000 1000", "Groups": "1000", "NoNewPrivs": "1", "Seccomp": "2",
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		},
		Rlimits: map[string][2]uint64{"nofile": {4096, 4096}, "sigpending": {1024, 1024}, "nproc": {99, 99}, "core": {0, 7}},
		Limits:  &made.Limits{Memory: 1<<30 - 4096, CPUs: 0.5, PIDs: 256},
		Mounts: []made.Mount{
			{Target: "/", Type: "overlay", ReadOnly: true}, {Target: "/proc", Type: "proc"}, {Target: "/proc/sys", Type: "proc", ReadOnly: true},
			{Target: "/proc/kcore", Type: "tmpfs", Null: true}, {Target: "/dev", Type: "tmpfs", Size: 65536 << 10}, {Target: "/dev/pts", Type: "devpts"},
			{Target: "/dev/shm", Type: "tmpfs", Size: 64 << 20}, {Target: "/dev/mqueue", Type: "mqueue"}, {Target: "/sys", Type: "sysfs", ReadOnly: true},
			{Target: "/sys/fs/cgroup", Type: "tmpfs"}, {Target: "/etc/hosts", Type: "ext4", ReadOnly: true},
			{Target: "/work", Type: "ext4"}, {Target: "/work/.git", Type: "ext4", ReadOnly: true}, {Target: "/opt/workshop", Type: "ext4", ReadOnly: true},
			{Target: "/tmp", Type: "tmpfs", Size: 64 << 20, NoSetuid: true, NoDevice: true, NoExec: true},
		},
		Devices: []string{"full", "null", "ptmx", "random", "tty", "urandom", "zero"}, Interfaces: []string{"lo"},
		Sockets: map[string]string{"AF_ALG": "EPERM", "AF_VSOCK": "EPERM"},
	}
	return a, k, r
}

func mount(target string, change func(*made.Mount)) func(*Asked, *Known, *made.Report) {
	return func(_ *Asked, _ *Known, r *made.Report) {
		change(&r.Mounts[slices.IndexFunc(r.Mounts, func(m made.Mount) bool { return m.Target == target })])
	}
}

func field(name, value string) func(*Asked, *Known, *made.Report) {
	return func(_ *Asked, _ *Known, r *made.Report) { r.Status[name] = value }
}

// gvisor makes of the container one of gVisor, and changes that.
func gvisor(change func(*Known, *made.Report)) func(*Asked, *Known, *made.Report) {
	return func(a *Asked, k *Known, r *made.Report) {
		a.OwnKernel, a.OtherRuntime, r.BootID, r.Version = true, "workshop-runsc", "other", "Linux version 4.19.0-gvisor"
		change(k, r)
	}
}

func room(a *Asked, _ *Known, r *made.Report) {
	a.Role, a.Capabilities, a.UID, a.GID = compose.RoleRoom, 0x1400, "0", "0"
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
		r.Status[set] = "0000000000001400"
	}
	r.Status["Uid"], r.Status["Gid"], r.Status["Groups"] = "0 0 0 0", "0 0 0 0", "0"
}

// madeCases change one thing of a container. want is the field and what is found; empty:
// no difference.
var madeCases = []struct {
	name   string
	change func(*Asked, *Known, *made.Report)
	want   string
}{
	{"nothing", func(*Asked, *Known, *made.Report) {}, ""},
	{"a kernel of its own", gvisor(func(*Known, *made.Report) {}), ""},
	{"gVisor with flags that open it", gvisor(func(k *Known, _ *made.Report) { k.GVisor = append(k.GVisor, "--host-uds=all", "--net-raw=true") }),
		"flags of gVisor: asked as with --host-uds=open --network=sandbox, found --host-uds=all, --net-raw=true"},
	{"gVisor without sockets", gvisor(func(k *Known, _ *made.Report) { k.GVisor = []string{"--network=sandbox"} }),
		"flags of gVisor: asked as with --host-uds=open --network=sandbox, found no --host-uds=open"},
	{"a gVisor that can't be seen", gvisor(func(k *Known, _ *made.Report) { k.GVisor = nil }),
		"flags of gVisor: asked as with --host-uds=open --network=sandbox, found none that can be seen"},
	{"a gVisor that ended", gvisor(func(k *Known, r *made.Report) { k.GVisor, r.Limits, k.Unseen = nil, nil, []Unseen{UnseenEnded} }), ""},
	{"another runtime's, that ended", gvisor(func(k *Known, r *made.Report) {
		k.GVisor, r.Limits, k.Unseen, r.BootID, r.Version = nil, nil, []Unseen{UnseenEnded}, k.Machine.BootID, k.Machine.Version
	}), "kernel: asked another than this machine's, found this machine's: Linux version 6.1.0"},
	{"gVisor without a limit", gvisor(func(_ *Known, r *made.Report) { r.Limits.Memory = 0 }), "memory: asked 1073741824, found 0"},
	{"gVisor with any number of processes", gvisor(func(_ *Known, r *made.Report) { r.Limits.PIDs = 0 }), "pids: asked 256, found 0"},
	{"gVisor whose limits can't be seen", gvisor(func(_ *Known, r *made.Report) { r.Limits = nil }),
		"memory: asked 1073741824, found not visible; swap: asked 0, found not visible; cpus: asked 0.5, found not visible; pids: asked 256, found not visible"},
	{"this machine's kernel for its own", func(a *Asked, _ *Known, _ *made.Report) { a.OwnKernel, a.OtherRuntime = true, "workshop-runsc" }, "kernel: asked another than this machine's, found this machine's: Linux version 6.1.0"},
	{"this machine's kernel by another name", func(a *Asked, _ *Known, r *made.Report) {
		a.OwnKernel, a.OtherRuntime, r.BootID = true, "workshop-runsc", "other"
	}, "kernel: asked another than this machine's, found this machine's: Linux version 6.1.0"},
	{"a kernel that doesn't say which it is", func(a *Asked, _ *Known, r *made.Report) {
		a.OwnKernel, a.OtherRuntime, r.BootID = true, "workshop-runsc", ""
	}, "kernel: asked another than this machine's, found one that doesn't say which it is"},
	{"the room's kernel, where the engine is elsewhere", func(a *Asked, k *Known, r *made.Report) {
		a.OwnKernel, a.OtherRuntime, k.Machine, k.Room.Kernel = true, "workshop-runsc", nil, r.Kernel
	}, "kernel: asked another than this machine's, found this machine's: Linux version 6.1.0"},
	{"a kernel that can't be compared", func(a *Asked, k *Known, _ *made.Report) {
		a.OwnKernel, a.OtherRuntime, k.Machine, k.Room = true, "workshop-runsc", nil, nil
	}, "kernel: asked another than this machine's, found one that can't be compared with this machine's"},
	{"another boot", func(_ *Asked, _ *Known, r *made.Report) { r.BootID = "other" }, "boot id: asked 8b8e1d9c, found other"},
	{"no boot id", func(_ *Asked, _ *Known, r *made.Report) { r.BootID = "" }, "boot id: asked 8b8e1d9c, found none"},
	{"this machine's boot id can't be read", func(_ *Asked, k *Known, r *made.Report) { k.Machine.BootID = "" }, "boot id: asked a known one, found 8b8e1d9c"},
	{"another kernel", func(_ *Asked, _ *Known, r *made.Report) { r.Version = "Linux version 4.4.0" }, "kernel version: asked Linux version 6.1.0, found Linux version 4.4.0"},
	{"inheritable capability", field("CapInh", "0000000000000001"), "CapInh: asked 0000000000000000, found 0000000000000001"},
	{"permitted capability", field("CapPrm", "0000000000000001"), "CapPrm: asked 0000000000000000, found 0000000000000001"},
	{"effective capability", field("CapEff", "0000000000000001"), "CapEff: asked 0000000000000000, found 0000000000000001"},
	{"capability in the bounding set", field("CapBnd", "0000000000000001"), "CapBnd: asked 0000000000000000, found 0000000000000001"},
	{"ambient capability", field("CapAmb", "0000000000000001"), "CapAmb: asked 0000000000000000, found 0000000000000001"},
	{"no ambient set", field("CapAmb", ""), "CapAmb: asked 0000000000000000, found none"},
	{"a room", room, ""},
	{"a room that can't load rules", func(a *Asked, k *Known, r *made.Report) { room(a, k, r); r.Status["CapBnd"] = "0000000000000400" }, "CapBnd: asked 0000000000001400, found 0000000000000400"},
	{"a room that hands its capabilities on", func(a *Asked, k *Known, r *made.Report) { room(a, k, r); r.Status["CapInh"] = "0000000000001400" }, ""},
	{"new privileges", field("NoNewPrivs", "0"), "NoNewPrivs: asked 1, found 0"},
	{"no filter", field("Seccomp", "0"), "Seccomp: asked 2, found 0"},
	{"another filter, crypto sockets", func(_ *Asked, _ *Known, r *made.Report) { r.Sockets["AF_ALG"] = "ok" }, "AF_ALG sockets: asked EPERM, found ok"},
	{"another filter, sockets of virtual machines", func(_ *Asked, _ *Known, r *made.Report) { r.Sockets["AF_VSOCK"] = "EAFNOSUPPORT" }, "AF_VSOCK sockets: asked EPERM, found EAFNOSUPPORT"},
	{"writable root", mount("/", func(m *made.Mount) { m.ReadOnly = false }), "root: asked ro, found rw"},
	{"no root", mount("/", func(m *made.Mount) { m.Target = "/x" }), "root: asked ro, found none"},
	{"writable, and asked for ro", mount("/work/.git", func(m *made.Mount) { m.ReadOnly = false }), "mounts: asked /work/.git ro, found /work/.git rw"},
	{"a mount is missing", mount("/opt/workshop", func(m *made.Mount) { m.Target = "/opt/other" }), "mounts: asked /opt/workshop mounted, found /opt/workshop not mounted"},
	{"ro, and asked for rw", mount("/work", func(m *made.Mount) { m.ReadOnly = true }), ""},
	{"setuid files", mount("/tmp", func(m *made.Mount) { m.NoSetuid = false }), "mounts: asked /tmp nosuid,nodev,noexec,tmpfs size=67108864, found /tmp suid,nodev,noexec,tmpfs size=67108864"},
	{"devices", mount("/tmp", func(m *made.Mount) { m.NoDevice = false }), "mounts: asked /tmp nosuid,nodev,noexec,tmpfs size=67108864, found /tmp nosuid,dev,noexec,tmpfs size=67108864"},
	{"programs", mount("/tmp", func(m *made.Mount) { m.NoExec = false }), "mounts: asked /tmp nosuid,nodev,noexec,tmpfs size=67108864, found /tmp nosuid,nodev,exec,tmpfs size=67108864"},
	{"a larger tmpfs", mount("/tmp", func(m *made.Mount) { m.Size = 1 << 30 }), "mounts: asked /tmp nosuid,nodev,noexec,tmpfs size=67108864, found /tmp nosuid,nodev,noexec,tmpfs size=1073741824"},
	{"a disk for a tmpfs", mount("/tmp", func(m *made.Mount) { m.Type, m.Size = "ext4", 0 }), "mounts: asked /tmp nosuid,nodev,noexec,tmpfs size=67108864, found /tmp nosuid,nodev,noexec,ext4 size=0"},
	{"setuid files where none count", func(a *Asked, _ *Known, r *made.Report) {
		a.NoSetuid, a.Mounts, r.Mounts[len(r.Mounts)-1].ReadOnly = true, a.Mounts[:1], true
	}, "mounts: asked /work nosuid,nodev, found /work suid,dev"},
	{"a writable mount that nobody asked for", func(_ *Asked, _ *Known, r *made.Report) {
		r.Mounts = append(r.Mounts, made.Mount{Target: "/data", Type: "ext4"})
	}, "writable mounts: asked none, found /data (ext4)"},
	{"a writable kernel file system", mount("/sys", func(m *made.Mount) { m.ReadOnly = false }), "writable mounts: asked none, found /sys (sysfs)"},
	{"a bound device", func(_ *Asked, _ *Known, r *made.Report) {
		r.Mounts = append(r.Mounts, made.Mount{Target: "/dev/null", Type: "devtmpfs", Device: "null"})
	}, ""},
	{"another device for a harmless one", func(_ *Asked, _ *Known, r *made.Report) {
		r.Mounts = append(r.Mounts, made.Mount{Target: "/dev/null", Type: "devtmpfs", Device: "sda"})
	}, "writable mounts: asked none, found /dev/null (devtmpfs)"},
	{"another bound device", func(_ *Asked, _ *Known, r *made.Report) {
		r.Mounts = append(r.Mounts, made.Mount{Target: "/dev/sda", Type: "devtmpfs", Device: "sda"})
	}, "writable mounts: asked none, found /dev/sda (devtmpfs)"},
	{"a /dev without a size", mount("/dev", func(m *made.Mount) { m.Size = 0 }), "writable mounts: asked none, found /dev (tmpfs)"},
	{"another file for a hidden one", mount("/proc/kcore", func(m *made.Mount) { m.Null = false }), "writable mounts: asked none, found /proc/kcore (tmpfs)"},
	{"root", field("Uid", "0 0 0 0"), "uid: asked 1000, found 0"},
	{"root can be had back", field("Uid", "1000 1000 0 1000"), "uid: asked 1000, found 1000 1000 0 1000"},
	{"a user by name", func(a *Asked, _ *Known, r *made.Report) { a.UID, a.GID = "", "" }, ""},
	{"a user by name that is root", func(a *Asked, _ *Known, r *made.Report) {
		a.UID, r.Status["Uid"] = "", "0 0 0 0"
	}, "uid: asked any but 0, found 0"},
	{"another group", func(_ *Asked, _ *Known, r *made.Report) { r.Status["Gid"], r.Status["Groups"] = "0 0 0 0", "" }, "gid: asked 1000, found 0"},
	{"more groups", field("Groups", "0 1000"), "groups: asked none, found 0"},
	{"the caller's group", func(a *Asked, _ *Known, r *made.Report) { a.Group, r.Status["Groups"] = "100", "100 1000" }, ""},
	{"another than the caller's group", func(a *Asked, _ *Known, r *made.Report) { a.Group, r.Status["Groups"] = "100", "0 100" }, "groups: asked none, found 0"},
	{"groups that aren't mapped", func(a *Asked, _ *Known, r *made.Report) { a.Unmapped, r.Status["Groups"] = true, "1000 65534" }, ""},
	{"groups that aren't mapped, as root", field("Groups", "65534"), "groups: asked none, found 65534"},
	{"mapped uids", func(_ *Asked, _ *Known, r *made.Report) { r.UIDMap = "0 100000 65536" }, "uid map: asked 0 0 4294967295, found 0 100000 65536"},
	{"mapped gids", func(_ *Asked, _ *Known, r *made.Report) { r.GIDMap = "0 100000 65536" }, "gid map: asked 0 0 4294967295, found 0 100000 65536"},
	{"uids are mapped as asked for", func(a *Asked, _ *Known, r *made.Report) { a.UIDMap, r.UIDMap = "1000 1000 1", "1000 1000 1" }, ""},
	{"another map of uids", func(a *Asked, _ *Known, r *made.Report) { a.UIDMap = "1000 1000 1" }, "uid map: asked 1000 1000 1, found 0 0 4294967295"},
	{"another map of gids", func(a *Asked, _ *Known, r *made.Report) { a.GIDMap = "1000 1000 1" }, "gid map: asked 1000 1000 1, found 0 0 4294967295"},
	{"more memory", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.Memory = 2 << 30 }, "memory: asked 1073741824, found 2147483648"},
	{"memory without a limit", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.Memory = 0 }, "memory: asked 1073741824, found 0"},
	{"swap", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.Swap = 1 << 30 }, "swap: asked 0, found 1073741824"},
	{"swap without a limit", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.Swap = -1 }, "swap: asked 0, found -1"},
	{"swap where it can't be limited", func(a *Asked, _ *Known, r *made.Report) { a.Limits.Swap, r.Limits.Swap = -1, -1 }, ""},
	{"more cpus", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.CPUs = 1 }, "cpus: asked 0.5, found 1"},
	{"cpus without a limit", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.CPUs = 0 }, "cpus: asked 0.5, found 0"},
	{"processes without a limit", func(_ *Asked, _ *Known, r *made.Report) { r.Limits.PIDs = 0 }, "pids: asked 256, found 0"},
	{"without limits, as asked for", func(a *Asked, _ *Known, r *made.Report) { a.Limits, r.Limits = nil, nil }, ""},
	{"a larger /dev/shm", mount("/dev/shm", func(m *made.Mount) { m.Size = 1 << 30 }), "/dev/shm: asked tmpfs size=67108864, found tmpfs size=1073741824"},
	{"a /dev/shm without a size", func(a *Asked, _ *Known, r *made.Report) {
		a.Shm = 0
		mount("/dev/shm", func(m *made.Mount) { m.Size = 0 })(nil, nil, r)
	}, "/dev/shm: asked tmpfs with a size, found tmpfs size=0"},
	{"the engine's size of /dev/shm", func(a *Asked, _ *Known, r *made.Report) { a.Shm = 0 }, ""},
	{"the machine's mounts", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["mnt"] = "mnt:[1]" }, "mnt namespace: asked its own, found this machine's"},
	{"the machine's processes", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["pid"] = "pid:[1]" }, "pid namespace: asked its own, found this machine's"},
	{"the machine's shared memory", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["ipc"] = "ipc:[1]" }, "ipc namespace: asked its own, found this machine's"},
	{"the machine's name", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["uts"] = "uts:[1]" }, "uts namespace: asked its own, found this machine's"},
	{"the machine's control groups", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["cgroup"] = "cgroup:[1]" }, "cgroup namespace: asked its own, found this machine's"},
	{"a namespace that isn't seen", func(_ *Asked, _ *Known, r *made.Report) { delete(r.Namespaces, "cgroup") }, "cgroup namespace: asked its own, found none"},
	{"a namespace that the kernel lacks", func(_ *Asked, k *Known, r *made.Report) {
		delete(r.Namespaces, "cgroup")
		delete(k.Machine.Namespaces, "cgroup")
	}, ""},
	{"a device", func(_ *Asked, _ *Known, r *made.Report) { r.Devices = append(r.Devices, "kvm") }, "devices: asked none, found kvm"},
	{"the kernel's memory", func(_ *Asked, _ *Known, r *made.Report) { r.Unmasked = []string{"/proc/kcore"} }, "unmasked paths: asked none, found /proc/kcore"},
	{"writable settings of the kernel", mount("/proc/sys", func(m *made.Mount) { m.Target = "/proc/fs" }), "/proc/sys: asked ro, found rw"},
	{"no interface yet", func(_ *Asked, _ *Known, r *made.Report) { r.Interfaces = nil }, ""},
	{"a cable", func(_ *Asked, _ *Known, r *made.Report) { r.Interfaces = []string{"eth0", "lo"} }, "interfaces: asked lo, found eth0 lo"},
	{"another room", func(_ *Asked, _ *Known, r *made.Report) { r.Namespaces["net"] = "net:[3]" }, "net namespace: asked its room's, found another"},
	{"the machine's network", func(_ *Asked, k *Known, r *made.Report) { k.Room, r.Namespaces["net"] = nil, "net:[1]" }, "net namespace: asked its own, found this machine's"},
	{"open files", func(_ *Asked, _ *Known, r *made.Report) { r.Rlimits["nofile"] = [2]uint64{4096, 1 << 20} }, "nofile: asked 4096:4096, found 4096:1048576"},
	{"queued signals", func(_ *Asked, _ *Known, r *made.Report) { delete(r.Rlimits, "sigpending") }, "sigpending: asked 1024:1024, found none"},
	{"processes of a user", func(_ *Asked, _ *Known, r *made.Report) { r.Rlimits["nproc"] = [2]uint64{100, 100} }, "nproc: asked 99:99, found 100:100"},
	{"cores of a guard", func(a *Asked, _ *Known, r *made.Report) { a.Role = compose.RoleGuard }, "core: asked 0:0, found 0:7"},
	{"a guard in the machine's network", func(a *Asked, k *Known, r *made.Report) {
		a.Role, a.MachineNetwork, k.Room, r.Rlimits["core"] = compose.RoleGuard, true, nil, [2]uint64{}
		r.Interfaces, r.Namespaces["net"] = []string{"eth0", "lo"}, "net:[1]"
	}, ""},
}

func TestCompareMade(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range madeCases {
		t.Run(tt.name, func(t *testing.T) {
			a, k, r := container()
			tt.change(&a, &k, r)
			var got []string
			for _, d := range CompareMade(a, k, r) {
				got, seen[d.Field] = append(got, d.String()), true
			}
			if all := strings.Join(got, "; "); all != tt.want {
				t.Errorf("got %q, want %q", all, tt.want)
			}
		})
	}
	for _, row := range madeRows {
		if !seen[row.field] {
			t.Errorf("no case has a difference of %s", row.field)
		}
	}
}

// TestCompareMade_NoLimits: control groups that the container doesn't see hold nothing.
func TestCompareMade_NoLimits(t *testing.T) {
	a, k, r := container()
	r.Limits = nil
	if all := CompareMade(a, k, r); len(all) != 4 || all[0].Found != "not visible" || all[0].Promise != "B5" {
		t.Errorf("%+v", all)
	}
}

// TestCompareMade_Empty: what says nothing is nothing that was asked for.
func TestCompareMade_Empty(t *testing.T) {
	a, k, _ := container()
	if n := len(CompareMade(a, k, &made.Report{})); n < 25 {
		t.Errorf("%d differences", n)
	}
}

// TestUnseenMade: what can't be compared names fields that are, and an engine elsewhere
// has the kernel of its first container.
func TestUnseenMade(t *testing.T) {
	for _, tt := range []struct {
		name string
		info Info
		want string
	}{
		{"here", Info{Local: true}, ""},
		{"elsewhere", Info{}, "kernel namespaces id-maps"},
		{"rootless Docker", Info{Local: true, Daemon: Daemon{Rootless: true}}, "id-maps"},
		{"mapped ids", Info{Local: true, Flavour: FlavourDocker, Daemon: Daemon{UserRemap: true}}, "id-maps"},
		{"podman", Info{Local: true, Flavour: FlavourPodman, Daemon: Daemon{CgroupVersion: "2"}}, ""},
		{"podman on cgroups of version 1", Info{Local: true, Flavour: FlavourPodman, Daemon: Daemon{CgroupVersion: "1"}}, "cgroup-namespace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var names []string
			for _, u := range UnseenMade(tt.info) {
				names = append(names, u.Name)
				for _, f := range u.Fields {
					if !slices.ContainsFunc(madeRows, func(row madeRow) bool { return row.field == f && row.promise == u.Promise }) {
						t.Errorf("no field %s of %s", f, u.Promise)
					}
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	a, k, r := container()
	k.Machine, k.Room, k.Unseen, k.First = nil, nil, UnseenMade(Info{}), &made.Report{Kernel: made.Kernel{BootID: "another"}}
	r.UIDMap, r.Namespaces, r.Version = "0 1 1", nil, "other"
	if all := CompareMade(a, k, r); len(all) != 1 || all[0].Field != "boot id" || all[0].Asked != "another" {
		t.Errorf("elsewhere: %+v", all)
	}
	k.First = nil
	if all := CompareMade(a, k, r); len(all) != 0 {
		t.Errorf("the first one elsewhere: %+v", all)
	}
}

// TestOtherRuntime: of a runtime that only the user's settings allow, what it brings isn't
// compared, and its kernel is told.
func TestOtherRuntime(t *testing.T) {
	a, k, r := container()
	a.OtherRuntime, k.Room = "runsc", nil
	if note := KernelNote(a, k, r); note != "" {
		t.Errorf("this machine's kernel: %q", note)
	}
	r.BootID, r.Version, r.Devices, r.Mounts, r.Limits, r.Sockets = "", "Linux version 4.4.0", []string{"nvidia0"}, nil, nil, nil
	delete(r.Status, "CapAmb")
	if all := CompareMade(a, k, r); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	if got, want := KernelNote(a, k, r), "its kernel is not this machine's, as your settings allow for the runtime runsc (B30): Linux version 4.4.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Status["CapEff"], r.Interfaces = "0000000000000001", []string{"eth0", "lo"}
	if all := CompareMade(a, k, r); len(all) != 2 {
		t.Errorf("%+v", all)
	}
}

// TestReports: a container that says nothing, or what is not valid, is refused.
func TestReports(t *testing.T) {
	var all Reports
	const text = "limits=1024 0 0.5 256\x1fend=\x1f"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "coder said nothing of its container before it was ready: remove it with `workshop down`, and run `workshop up` again"},
		{"not fields", "{", "what coder said of its container is not valid: it is cut at \"{\": remove it with `workshop down`, and run `workshop up` again"},
		{"cut", "limits=1024 0 0.5 256\x1f", "what coder said of its container is not valid: it is cut at \"\": remove it with `workshop down`, and run `workshop up` again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := all.Add("coder", "", tt.text, Info{}); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, k, err := all.Add("room", "", text, Info{}); err != nil || k.First != nil || k.Machine != nil || len(k.Unseen) != 3 {
		t.Errorf("%+v %v", k, err)
	}
	if r, k, err := all.Add("coder", "room", text, Info{}); err != nil || k.First == nil || k.Room == nil || r.Limits.PIDs != 256 {
		t.Errorf("%+v %v", k, err)
	}
}

// TestRefuseMade: the refusal lists all differences.
func TestRefuseMade(t *testing.T) {
	err := RefuseMade(compose.RoleWorker, "coder", []Difference{{"B2", "NoNewPrivs", "1", "0"}, {"B3", "root", "ro", "rw"}})
	const want = "worker coder isn't what was asked of the engine: B2 NoNewPrivs: asked 1, found 0; B3 root: asked ro, found rw (B2, B3): see what the engine and its runtime are: `workshop doctor`"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := RefuseMade(compose.RoleGuard, "guard", nil); err != nil {
		t.Error(err)
	}
}

// TestCapabilitySet: a name that isn't known would be compared as none.
func TestCapabilitySet(t *testing.T) {
	if set, err := CapabilitySet([]string{"NET_ADMIN", "CAP_NET_BIND_SERVICE"}); err != nil || set != 0x1400 {
		t.Errorf("%x %v", set, err)
	}
	if _, err := CapabilitySet([]string{"SYS_ADMIN"}); err == nil {
		t.Error("an unknown one is none")
	}
}

func TestIsReport(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		timestamps bool
		want       bool
	}{
		{"a report", "MADE {}\n", false, true},
		{"with its time", "2026-11-28T05:00:00.000000000Z MADE {}\n", true, true},
		{"another line", "READY\n", false, false},
		{"later in a line", "x MADE {}\n", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := isReport([]byte(tt.line), tt.timestamps); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

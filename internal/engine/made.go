package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/made"
)

// Asked is what was asked of an engine for a container, as far as the container can show
// it itself.
type Asked struct {
	Role compose.Role
	// UID and GID are numbers; empty: any but 0.
	UID, GID string
	// UIDMap and GIDMap are as in a report; empty: those of this machine.
	UIDMap, GIDMap string
	// Group is a supplementary group that the engine adds, the caller's; empty: none.
	Group string
	// Unmapped: groups of the caller that its user namespace doesn't map are kept.
	Unmapped     bool
	Capabilities uint64 // exactly these
	// Mounts besides the root and those that every container gets.
	Mounts []AskedMount
	// NoSetuid: all of them are nosuid and nodev.
	NoSetuid bool
	// Devices besides those that every container has, by their names in /dev.
	Devices []string
	Shm     int64 // size of /dev/shm in bytes; 0: any
	// Limits of control groups; 0 and, of Swap, -1: none is asked for. Nil: the user
	// accepts that there are none.
	Limits  *made.Limits
	Rlimits map[string][2]uint64
	// MachineNetwork: it is in this machine's network namespace.
	MachineNetwork bool
	// OtherRuntime is an OCI runtime that only the user's settings allow: it may bring a
	// kernel, and add devices and mounts. Empty: one of the machine's kernel.
	OtherRuntime string
	// OwnKernel: its kernel must not be this machine's (B13).
	OwnKernel bool
}

// AskedMount is a mount that was asked for. Size is that of a memory file system in
// bytes; 0: it is another mount.
type AskedMount struct {
	Target                               string
	ReadOnly, NoSetuid, NoDevice, NoExec bool
	Size                                 int64
}

// Known is what else is known when a container reports what it is.
type Known struct {
	// Machine is the kernel of this machine; nil: the engine is elsewhere.
	Machine *made.Kernel
	// First is the report of another container of the engine, and Room that of the room
	// that it joins; nil: there is none.
	First, Room *made.Report
	// GVisor are the flags of the process on this machine that is the kernel of a worker
	// with [Asked.OwnKernel]; nil: they can't be seen.
	GVisor []string
	// Unseen are not compared.
	Unseen []Unseen
}

// Unseen are fields of [CompareMade] that can't be compared on an engine or a machine:
// nobody may say that they hold.
type Unseen struct {
	Name    string // a word: "id-maps"
	Promise string
	Fields  []string
	Why     string
}

// UnseenMade are the fields that can't be compared on an engine.
func UnseenMade(i Info) (out []Unseen) {
	switch {
	case !i.Local:
		out = append(out,
			Unseen{"kernel", "B30", []string{"kernel version"}, "the engine is not on this machine: the kernels of its containers are compared with each other"},
			Unseen{"namespaces", "B6", []string{"mnt namespace", "pid namespace", "ipc namespace", "uts namespace", "cgroup namespace"}, "the engine is not on this machine: its own namespaces are not known here"},
			Unseen{"id-maps", "B4", []string{"uid map", "gid map"}, "the engine is not on this machine: its own ids are not known here"})
	case i.Daemon.Rootless && i.Flavour != FlavourPodman || i.MappedIDs() != "":
		out = append(out, Unseen{"id-maps", "B4", []string{"uid map", "gid map"}, "the engine maps ids as it chooses"})
	}
	// podman's API has no word for it (see the finding "cgroup-names" of the dialect).
	if i.Flavour == FlavourPodman && i.Daemon.CgroupVersion == "1" {
		out = append(out, Unseen{"cgroup-namespace", "B6", []string{"cgroup namespace"}, "podman gives containers the machine's namespace of control groups, of version 1"})
	}
	return out
}

// CompareMade compares what a container reports of itself with what was asked for. It
// returns every difference, in the order of its fields.
func CompareMade(a Asked, k Known, r *made.Report) (out []Difference) {
	c := &comparison{Asked: a, Known: k, r: r}
	for _, row := range madeRows {
		if slices.ContainsFunc(k.Unseen, func(u Unseen) bool { return slices.Contains(u.Fields, row.field) }) {
			continue
		}
		asked, found := row.values(c)
		// What a runtime brings, and its kernel doesn't show, is the user's decision.
		if asked == found || a.OtherRuntime != "" && (!row.always && !(a.OwnKernel && slices.Contains(seenOutside, row.field)) || found == "") {
			continue
		}
		out = append(out, Difference{Promise: row.promise, Field: row.field, Asked: asked, Found: found})
	}
	return out
}

// KernelNote says that a container has another kernel than this machine, which only the
// user's settings allow (B30); "": it has this machine's, or there is none to compare.
func KernelNote(a Asked, k Known, r *made.Report) string {
	if a.OwnKernel || a.OtherRuntime == "" || k.Machine == nil || r.BootID == k.Machine.BootID && r.Version == k.Machine.Version {
		return ""
	}
	return fmt.Sprintf("its kernel is not this machine's, as your settings allow for the runtime %s (B30): %s", a.OtherRuntime, r.Version)
}

// comparison is one call of CompareMade.
type comparison struct {
	Asked
	Known
	r *made.Report
}

// madeRow is a compared field. Equal values are no difference.
type madeRow struct {
	promise, field string
	always         bool // also of runtimes that only the user's settings allow
	values         func(*comparison) (asked, found string)
}

// seenOutside are the fields that are read outside of a worker with a kernel of its own.
var seenOutside = []string{"memory", "swap", "cpus", "pids"}

// UnseenEnded is what can't be compared of such a worker that has ended: what it reported is.
var UnseenEnded = Unseen{"ended", "B13", append([]string{gvisorField}, seenOutside...), "the container ended"}

var madeRows = []madeRow{
	{"B13", "kernel", true, (*comparison).ownKernel},
	{"B13", gvisorField, true, (*comparison).gvisorFlags},
	{"B30", "boot id", false, (*comparison).bootID},
	{"B30", "kernel version", false, (*comparison).version},
	{"B1", "CapInh", true, (*comparison).capInh},
	{"B1", "CapPrm", true, capability("CapPrm")},
	{"B1", "CapEff", true, capability("CapEff")},
	{"B1", "CapBnd", true, capability("CapBnd")},
	{"B1", "CapAmb", true, (*comparison).capAmb},
	{"B2", "NoNewPrivs", true, status("NoNewPrivs", "1")},
	{"B2", "Seccomp", false, status("Seccomp", "2")},
	{"B2", "AF_ALG sockets", false, refused("AF_ALG")},
	{"B2", "AF_VSOCK sockets", false, refused("AF_VSOCK")},
	{"B3", "root", false, (*comparison).root},
	{"B3", "mounts", false, (*comparison).mounts},
	{"B3", "writable mounts", false, (*comparison).writable},
	{"B4", "uid", true, (*comparison).uid},
	{"B4", "gid", true, (*comparison).gid},
	{"B4", "groups", false, (*comparison).groups},
	{"B4", "uid map", false, (*comparison).uidMap},
	{"B4", "gid map", false, (*comparison).gidMap},
	{"B5", "memory", false, (*comparison).memory},
	{"B5", "swap", false, (*comparison).swap},
	{"B5", "cpus", false, (*comparison).cpus},
	{"B5", "pids", false, (*comparison).pids},
	{"B5", "/dev/shm", false, (*comparison).shm},
	{"B6", "mnt namespace", false, namespace("mnt")},
	{"B6", "pid namespace", false, namespace("pid")},
	{"B6", "ipc namespace", false, namespace("ipc")},
	{"B6", "uts namespace", false, namespace("uts")},
	{"B6", "cgroup namespace", false, namespace("cgroup")},
	{"B6", "devices", false, (*comparison).devices},
	{"B6", "unmasked paths", false, (*comparison).unmasked},
	{"B6", "/proc/sys", false, (*comparison).procSys},
	{"B20", "interfaces", true, (*comparison).interfaces},
	{"B20", "net namespace", false, (*comparison).network},
	{"B60", "nofile", false, rlimit("nofile")},
	{"B60", "sigpending", false, rlimit("sigpending")},
	{"B60", "nproc", false, rlimit("nproc")},
	{"B32", "core", false, (*comparison).core},
}

func status(field, want string) func(*comparison) (string, string) {
	return func(c *comparison) (string, string) { return want, c.r.Status[field] }
}

func refused(family string) func(*comparison) (string, string) {
	return func(c *comparison) (string, string) { return "EPERM", c.r.Sockets[family] }
}

// ownKernel compares with the kernel of this machine, or of any other container of the engine.
func (c *comparison) ownKernel() (asked, found string) {
	const another = "another than this machine's"
	if !c.OwnKernel {
		return "", ""
	}
	of := c.Machine
	for _, r := range []*made.Report{c.Room, c.First} {
		if of == nil && r != nil {
			of = &r.Kernel
		}
	}
	switch {
	case of == nil || of.BootID == "" || of.Version == "":
		return another, "one that can't be compared with this machine's"
	case c.r.BootID == "" || c.r.Version == "":
		return another, "one that doesn't say which it is"
	case c.r.BootID == of.BootID || c.r.Version == of.Version:
		return another, "this machine's: " + c.r.Version
	}
	return another, another
}

func (c *comparison) bootID() (string, string) {
	switch {
	case c.Machine != nil && c.Machine.BootID != "":
		return c.Machine.BootID, c.r.BootID
	case c.Machine == nil && c.First != nil && c.First.BootID != "":
		return c.First.BootID, c.r.BootID
	case c.Machine == nil && c.r.BootID != "":
		return c.r.BootID, c.r.BootID // the first one
	}
	return "a known one", c.r.BootID
}

func (c *comparison) version() (string, string) {
	if c.Machine == nil {
		return c.r.Version, c.r.Version
	}
	return c.Machine.Version, c.r.Version
}

func capability(set string) func(*comparison) (string, string) {
	return func(c *comparison) (string, string) { return fmt.Sprintf("%016x", c.Capabilities), c.r.Status[set] }
}

func (c *comparison) capInh() (string, string) { return c.noMore("CapInh") }
func (c *comparison) capAmb() (string, string) { return c.noMore("CapAmb") }

// noMore: engines differ in whether what is kept can be inherited.
func (c *comparison) noMore(set string) (string, string) {
	asked, found := capability(set)(c)
	if n, err := strconv.ParseUint(found, 16, 64); err == nil && n&^c.Capabilities == 0 {
		return found, found
	}
	return asked, found
}

func (c *comparison) uid() (string, string) { return ids(c.UID, c.r.Status["Uid"]) }
func (c *comparison) gid() (string, string) { return ids(c.GID, c.r.Status["Gid"]) }

// ids compares the real, effective, saved and file system id.
func ids(want, all string) (asked, found string) {
	f := strings.Fields(all)
	if len(f) == 4 && f[0] == f[1] && f[0] == f[2] && f[0] == f[3] {
		all = f[0]
		if want == "" && all != "0" {
			return all, all
		}
	}
	if want == "" {
		want = "any but 0"
	}
	return want, all
}

// overflowID is how the kernel shows an id that isn't mapped
// (/proc/sys/kernel/overflowgid).
const overflowID = "65534"

// groups: some engines list the group itself, too.
func (c *comparison) groups() (string, string) {
	own, _, _ := strings.Cut(c.r.Status["Gid"], " ")
	found := slices.DeleteFunc(strings.Fields(c.r.Status["Groups"]), func(g string) bool {
		return g == own || g == c.Group || c.Unmapped && g == overflowID
	})
	return "", strings.Join(found, " ")
}

func (c *comparison) uidMap() (string, string) {
	if c.UIDMap == "" && c.Machine != nil {
		return c.Machine.UIDMap, c.r.UIDMap
	}
	return c.UIDMap, c.r.UIDMap
}

func (c *comparison) gidMap() (string, string) {
	if c.GIDMap == "" && c.Machine != nil {
		return c.Machine.GIDMap, c.r.GIDMap
	}
	return c.GIDMap, c.r.GIDMap
}

func rlimit(name string) func(*comparison) (string, string) {
	return func(c *comparison) (asked, found string) {
		want, ok := c.Rlimits[name]
		is, read := c.r.Rlimits[name]
		if !ok {
			return "", ""
		}
		if read {
			found = fmt.Sprintf("%d:%d", is[0], is[1])
		}
		return fmt.Sprintf("%d:%d", want[0], want[1]), found
	}
}

// core: values of credentials are in no file of a core (B32).
func (c *comparison) core() (string, string) {
	is, read := c.r.Rlimits["core"]
	if c.Role != compose.RoleGuard || read && is == [2]uint64{} {
		return "", ""
	}
	return "0:0", fmt.Sprintf("%d:%d", is[0], is[1])
}

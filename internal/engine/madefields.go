package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/made"
)

// HarmlessDevices are the devices of every container.
var HarmlessDevices = []string{"console", "full", "null", "ptmx", "random", "tty", "urandom", "zero"}

// KernelMounts are the kernel's own file systems that are mounted rw, by target: their
// files are checked by the kernel, and the dangerous ones are covered.
var KernelMounts = map[string]string{"/proc": "proc", "/dev/pts": "devpts", "/dev/mqueue": "mqueue", "/dev/console": "devpts", "/sys/fs/cgroup": "tmpfs"}

// page is the largest page of a kernel: sizes are multiples of one.
const page = 64 << 10

// near reports whether a size is the asked one but for whole pages.
func near(asked, found int64) bool { return found > asked-page && found < asked+page }

func (c *comparison) at(target string) *made.Mount {
	for i := range c.r.Mounts {
		if c.r.Mounts[i].Target == target {
			return &c.r.Mounts[i]
		}
	}
	return nil
}

func (c *comparison) root() (string, string) {
	switch m := c.at("/"); {
	case m == nil:
		return "ro", ""
	case m.ReadOnly:
		return "ro", "ro"
	}
	return "ro", "rw"
}

func (c *comparison) mounts() (string, string) {
	var asked, found []string
	for i := range c.Mounts {
		want, is := &c.Mounts[i], c.at(c.Mounts[i].Target)
		if x, y := mountText(want, is, c.NoSetuid); x != y {
			asked, found = append(asked, want.Target+" "+x), append(found, want.Target+" "+y)
		}
	}
	return strings.Join(asked, ", "), strings.Join(found, ", ")
}

// mountText are both sides of one mount. What was to be rw may be ro.
func mountText(want *AskedMount, is *made.Mount, noSetuid bool) (asked, found string) {
	if is == nil {
		return "mounted", "not mounted"
	}
	var a, f []string
	flag := func(asked, found bool, name, without string) {
		if !asked {
			return
		}
		a = append(a, name)
		if found {
			without = name
		}
		f = append(f, without)
	}
	flag(want.ReadOnly, is.ReadOnly, "ro", "rw")
	flag(want.NoSetuid || noSetuid, is.NoSetuid, "nosuid", "suid")
	flag(want.NoDevice || noSetuid, is.NoDevice, "nodev", "dev")
	flag(want.NoExec, is.NoExec, "noexec", "exec")
	if want.Size > 0 {
		ok := is.Type == "tmpfs" && is.Size > 0 && near(want.Size, is.Size)
		flag(true, ok, fmt.Sprintf("tmpfs size=%d", want.Size), fmt.Sprintf("%s size=%d", is.Type, is.Size))
	}
	return strings.Join(a, ","), strings.Join(f, ",")
}

// writable are mounts that may be written, and nobody asked for.
func (c *comparison) writable() (string, string) {
	var found []string
	for i := range c.r.Mounts {
		m := &c.r.Mounts[i]
		switch {
		case m.ReadOnly, m.Target == "/", m.Target == "/dev/shm": // others compare these
		case slices.ContainsFunc(c.Mounts, func(a AskedMount) bool { return a.Target == m.Target }):
		case KernelMounts[m.Target] == m.Type:
		case m.Target == "/dev" && m.Type == "tmpfs" && m.Size > 0:
		case m.Device != "" && m.Target == "/dev/"+m.Device && slices.Contains(HarmlessDevices, m.Device): // without root a node is bound
		case m.Null && (subpath.Within(m.Target, "/proc") || subpath.Within(m.Target, "/sys")):
		default:
			found = append(found, fmt.Sprintf("%s (%s)", m.Target, m.Type))
		}
	}
	return "", strings.Join(found, ", ")
}

// limit is both sides of a limit of control groups.
func (c *comparison) limit(value func(*made.Limits) float64, ok func(asked, found float64) bool) (asked, found string) {
	if c.Limits == nil {
		return "", ""
	}
	want := value(c.Limits)
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if c.r.Limits == nil {
		return text(want), "not visible"
	}
	if is := value(c.r.Limits); !ok(want, is) {
		return text(want), text(is)
	}
	return "", ""
}

func (c *comparison) memory() (string, string) {
	return c.limit(func(l *made.Limits) float64 { return float64(l.Memory) }, func(asked, found float64) bool {
		return asked == 0 || found > 0 && near(int64(asked), int64(found))
	})
}

func (c *comparison) swap() (string, string) {
	return c.limit(func(l *made.Limits) float64 { return float64(l.Swap) }, func(asked, found float64) bool {
		return asked < 0 || found == asked
	})
}

// cpus: a quota is a whole number of microseconds.
func (c *comparison) cpus() (string, string) {
	return c.limit(func(l *made.Limits) float64 { return l.CPUs }, func(asked, found float64) bool {
		return asked == 0 || found > asked*0.98 && found < asked*1.02
	})
}

func (c *comparison) pids() (string, string) {
	return c.limit(func(l *made.Limits) float64 { return float64(l.PIDs) }, func(asked, found float64) bool {
		return asked == 0 || found == asked
	})
}

func (c *comparison) shm() (asked, found string) {
	asked = "tmpfs with a size"
	if c.Shm > 0 {
		asked = fmt.Sprintf("tmpfs size=%d", c.Shm)
	}
	if m := c.at("/dev/shm"); m != nil {
		if m.Type == "tmpfs" && m.Size > 0 && (c.Shm == 0 || near(c.Shm, m.Size)) {
			return "", ""
		}
		found = fmt.Sprintf("%s size=%d", m.Type, m.Size)
	}
	return asked, found
}

// namespace: it is not this machine's. A kind that the kernel lacks isn't compared.
func namespace(kind string) func(*comparison) (string, string) {
	return func(c *comparison) (string, string) {
		const own = "its own"
		if c.Machine == nil {
			return own, own
		}
		switch here, is := c.Machine.Namespaces[kind], c.r.Namespaces[kind]; {
		case here == "" && is == "", is != "" && is != here:
			return own, own
		case is == "":
			return own, ""
		}
		return own, "this machine's"
	}
}

func (c *comparison) devices() (string, string) {
	found := slices.DeleteFunc(slices.Clone(c.r.Devices), func(d string) bool { return slices.Contains(HarmlessDevices, d) })
	return strings.Join(c.Devices, " "), strings.Join(found, " ")
}

func (c *comparison) unmasked() (string, string) { return "", strings.Join(c.r.Unmasked, " ") }

func (c *comparison) procSys() (string, string) {
	if m := c.at("/proc/sys"); m != nil && m.ReadOnly {
		return "ro", "ro"
	}
	return "ro", "rw"
}

// interfaces of what isn't the guard.
func (c *comparison) interfaces() (string, string) {
	if c.Role == compose.RoleGuard || len(c.r.Interfaces) == 0 { // a worker may report before its room has brought up lo
		return "", ""
	}
	return "lo", strings.Join(c.r.Interfaces, " ")
}

// network: a worker in a room has the room's namespace.
func (c *comparison) network() (string, string) {
	switch {
	case c.MachineNetwork:
		return "", ""
	case c.Room != nil && c.Room.Namespaces["net"] != c.r.Namespaces["net"]:
		return "its room's", "another"
	}
	return namespace("net")(c)
}

package made

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/procinfo"
)

// maxNames bounds the entries of a list.
const maxNames = 64

// kinds of namespaces.
var kinds = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// masked are paths that every engine hides: the machine's memory, and keys and timers of
// all its processes (moby: oci/defaults.go).
var masked = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"}

var rlimits = map[string]int{"core": unix.RLIMIT_CORE, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "sigpending": unix.RLIMIT_SIGPENDING}

// families are refused by our seccomp profile, and by the kernel only if it lacks them
// (with EAFNOSUPPORT).
var families = map[string]int{"AF_ALG": unix.AF_ALG, "AF_VSOCK": unix.AF_VSOCK}

// Read reads what this process's container is.
func Read() *Report {
	r := &Report{
		Kernel: ReadKernel(), Status: procinfo.Status(read("/proc/self/status"), StatusFields),
		Rlimits: map[string][2]uint64{}, Devices: devices(), Sockets: map[string]string{},
	}
	for name, resource := range rlimits {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) == nil {
			r.Rlimits[name] = [2]uint64{l.Cur, l.Max}
		}
	}
	mountinfo := read("/proc/self/mountinfo")
	r.Limits, _ = readLimits(os.Getpid(), mountinfo)
	r.mounts(procinfo.Reachable(procinfo.Mounts(mountinfo)))
	r.Interfaces = interfaces()
	for name, family := range families {
		r.Sockets[name] = try(family)
	}
	return r
}

// ReadKernel reads what the kernel of this process is, and its namespaces.
func ReadKernel() Kernel {
	k := Kernel{
		BootID: strings.TrimSpace(read("/proc/sys/kernel/random/boot_id")), Version: strings.TrimSpace(read("/proc/version")),
		UIDMap: idMap(read("/proc/self/uid_map")), GIDMap: idMap(read("/proc/self/gid_map")),
		Namespaces: map[string]string{},
	}
	for _, kind := range kinds {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			k.Namespaces[kind] = id
		}
	}
	return k
}

// ReadLimits reads the limits of a process's control groups, where these are visible.
func ReadLimits(pid int) (*Limits, error) { return readLimits(pid, read("/proc/self/mountinfo")) }

func readLimits(pid int, mountinfo string) (*Limits, error) {
	e, err := cgroup.LimitsOn(pid, mountinfo)
	if err != nil {
		return nil, err
	}
	return &Limits{Memory: e.Memory, Swap: e.Swap, CPUs: e.CPUs, PIDs: e.PIDs}, nil
}

func (r *Report) mounts(all []procinfo.Mount) {
	for i := range all {
		m := &all[i]
		r.Mounts = append(r.Mounts, Mount{
			Target: m.Target, Type: m.Type, ReadOnly: m.ReadOnly(), NoSetuid: m.Has("nosuid"), NoDevice: m.Has("nodev"), NoExec: m.Has("noexec"),
			Size: m.Size(), Null: m.Root == "/null",
		})
		if m.Type == "devtmpfs" {
			r.Mounts[len(r.Mounts)-1].Device = strings.TrimPrefix(m.Root, "/")
		}
	}
	for _, p := range masked {
		if _, err := os.Lstat(p); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if !slices.ContainsFunc(all, func(m procinfo.Mount) bool { return m.Target == p }) {
			r.Unmasked = append(r.Unmasked, p)
		}
	}
}

// devices lists the device nodes in /dev. A node may be bound over a file, so an entry's
// own type tells nothing.
func devices() (names []string) {
	all, err := os.ReadDir("/dev")
	if err != nil {
		return []string{"/dev: " + err.Error()}
	}
	for _, e := range all {
		info, err := os.Lstat(path.Join("/dev", e.Name()))
		if (err != nil || info.Mode()&os.ModeDevice != 0) && len(names) < maxNames {
			names = append(names, e.Name())
		}
	}
	return names
}

// interfaces lists the interfaces that are up. Fallback devices of tunnel modules appear
// in every namespace and are down. It asks neither by rtnetlink nor by anything else that
// waits for the kernel's RTNL lock, which each network namespace that begins or ends takes.
func interfaces() (names []string) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return []string{err.Error()}
	}
	defer unix.Close(s)
	all := procinfo.Interfaces(read("/proc/self/net/dev"))
	if len(all) == 0 {
		return []string{"/proc/self/net/dev can't be read"}
	}
	for _, name := range all {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r) // netdevice(7)
		}
		if (err != nil || r.Uint16()&unix.IFF_UP != 0) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	return names
}

// try opens a socket of a family.
func try(family int) string {
	fd, err := unix.Socket(family, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.ErrnoName(err.(unix.Errno))
	}
	unix.Close(fd)
	return "ok"
}

func idMap(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines[:min(len(lines), maxNames)], ", ")
}

// read is a file's text; "" when it can't be read. It reads in large pieces: the kernel
// writes a list such as mountinfo anew for each.
func read(file string) string {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 16<<10)
	for len(b) < MaxLine {
		b = slices.Grow(b, 4<<10)
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return ""
		case n == 0:
			return string(b)
		}
		b = b[:len(b)+n]
	}
	return ""
}

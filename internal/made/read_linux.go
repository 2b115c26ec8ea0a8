package made

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/procinfo"
)

// kinds of namespaces.
var kinds = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// masked are paths that every engine hides: the machine's memory, and keys and timers of
// all its processes (moby: oci/defaults.go).
var masked = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"}

var rlimits = []struct {
	name     string
	resource int
}{{"core", unix.RLIMIT_CORE}, {"nofile", unix.RLIMIT_NOFILE}, {"nproc", unix.RLIMIT_NPROC}, {"sigpending", unix.RLIMIT_SIGPENDING}}

// families are refused by our seccomp profile, and by the kernel only if it lacks them
// (with EAFNOSUPPORT).
var families = []struct {
	name   string
	family int
}{{"AF_ALG", unix.AF_ALG}, {"AF_VSOCK", unix.AF_VSOCK}}

// Line reads what this process's container is: one line for stdout, with its end. Texts of
// the kernel are handed on as they are: a container begins as a cold program that has a part
// of a CPU, and whoever compares it is neither. So mountinfo, which is /proc/self/mountinfo,
// is read once in it ([Mountinfo]).
func Line(mountinfo string) string {
	l := line{text: append(make([]byte, 0, 16<<10), Prefix...)}
	l.add("mountinfo", mountinfo)
	l.add("status", procinfo.Read("/proc/self/status"))
	if is, err := readLimits(os.Getpid(), mountinfo); err == nil {
		l.add("limits", is.line())
	}
	for _, r := range rlimits {
		var is unix.Rlimit
		if unix.Getrlimit(r.resource, &is) == nil {
			l.add("rlimit", r.name+" "+strconv.FormatUint(is.Cur, 10)+" "+strconv.FormatUint(is.Max, 10))
		}
	}
	for _, path := range masked {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != unix.ENOENT {
			l.add("exists", path)
		}
	}
	l.devices()
	l.interfaces()
	for _, f := range families {
		l.add("socket", f.name+" "+try(f.family))
	}
	l.kernel()
	l.add(end, "")
	return string(append(l.text, '\n'))
}

// Mountinfo reads the mounts of this process for [Line]; "" if they can't be read.
func Mountinfo() string { return procinfo.Read("/proc/self/mountinfo") }

// line is one that is being written.
type line struct{ text []byte }

func (l *line) add(key, value string) {
	l.text = append(append(l.text, key...), '=')
	l.text = append(append(l.text, lines.Replace(value)...), endField...)
}

// lines replaces the ends of lines. A separator in a value is something else, and differs.
var lines = strings.NewReplacer("\n", endLine, endLine, "?", endField, "?")

// kernel adds what the kernel of this process is, and its namespaces.
func (l *line) kernel() {
	l.add("boot_id", BootID())
	l.add("version", procinfo.Read("/proc/version"))
	l.add("uid_map", procinfo.Read("/proc/self/uid_map"))
	l.add("gid_map", procinfo.Read("/proc/self/gid_map"))
	for _, kind := range kinds {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			l.add("namespace", kind+" "+id)
		}
	}
}

// ReadKernel reads the kernel of this process, and its namespaces.
func ReadKernel() Kernel {
	var l line
	l.kernel()
	l.add(end, "")
	r, err := Parse(string(l.text))
	if err != nil { // of no text that line adds
		return Kernel{}
	}
	return r.Kernel
}

// BootID returns the machine's boot ID; "" if it can't be read.
func BootID() string { return strings.TrimSpace(procinfo.Read("/proc/sys/kernel/random/boot_id")) }

// ReadArgs reads the arguments of a process, its program first; one that ended, or can't be
// seen, has none (proc_pid_cmdline(5)).
func ReadArgs(pid int) []string {
	text := procinfo.Read("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
}

// FileID names the file at a path, after links, by its device and its number there; "": none
// is there, or it can't be seen. A file that is in use keeps its number.
func FileID(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return strconv.FormatUint(uint64(st.Dev), 10) + ":" + strconv.FormatUint(st.Ino, 10)
}

// ReadLimits reads the limits of a process's control groups, where these are visible.
func ReadLimits(pid int) (*Limits, error) {
	return readLimits(pid, Mountinfo())
}

func readLimits(pid int, mountinfo string) (*Limits, error) {
	e, err := cgroup.LimitsOn(pid, mountinfo)
	if err != nil {
		return nil, err
	}
	return &Limits{Memory: e.Memory, Swap: e.Swap, CPUs: e.CPUs, PIDs: e.PIDs}, nil
}

// devices adds the device nodes in /dev. A node may be bound over a file, so an entry's
// own type tells nothing.
func (l *line) devices() {
	all, err := os.ReadDir("/dev")
	if err != nil {
		l.add("device", "/dev: "+err.Error())
		return
	}
	for _, e := range all {
		var st unix.Stat_t
		err := unix.Lstat("/dev/"+e.Name(), &st)
		if kind := st.Mode & unix.S_IFMT; err != nil || kind == unix.S_IFCHR || kind == unix.S_IFBLK {
			l.add("device", e.Name())
		}
	}
}

// interfaces adds the interfaces that are up. Fallback devices of tunnel modules appear
// in every namespace and are down. It asks neither by rtnetlink nor by anything else that
// waits for the kernel's RTNL lock, which each network namespace that begins or ends takes.
func (l *line) interfaces() {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.add("interface", err.Error())
		return
	}
	defer unix.Close(s)
	all := procinfo.Interfaces(procinfo.Read("/proc/self/net/dev"))
	if len(all) == 0 {
		l.add("interface", "/proc/self/net/dev can't be read")
	}
	for _, name := range all {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r) // netdevice(7)
		}
		if err != nil || r.Uint16()&unix.IFF_UP != 0 {
			l.add("interface", name)
		}
	}
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

package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// Modules are the security modules of the kernel, as they were read.
type Modules struct {
	LSM         string // /sys/kernel/security/lsm; empty: not readable
	AppArmor    string // /sys/module/apparmor/parameters/enabled
	RestrictsNS string // kernel.apparmor_restrict_unprivileged_userns
	SELinux     string // /sys/fs/selinux/enforce; empty: there is none
	// EngineLabels: the Docker engine labels containers with SELinux.
	EngineLabels bool
	Landlock     int // its ABI; 0: none
}

// Findings say what is on, and what it means. What a rootless caller is denied is among
// the engine's own findings.
func (m Modules) Findings() []Finding {
	var out []Finding
	add := func(name string, level Level, text, do string) {
		out = append(out, Finding{Security, name, level, text, do})
	}
	switch {
	case m.AppArmor != "Y":
		add("apparmor", OK, "AppArmor is off", "")
	case m.RestrictsNS == "1":
		add("apparmor", OK, "AppArmor is on, and restricts user namespaces to programs whose profile allows them", "")
	default:
		add("apparmor", OK, "AppArmor is on", "")
	}
	switch {
	case m.SELinux == "1" && m.EngineLabels:
		add("selinux", Warning, "SELinux is enforced and labels containers: they can't read files that have no label for it, and nothing relabels yours", "run on namespaces instead: `workshop --engine namespace up`")
	case m.SELinux == "1":
		add("selinux", OK, "SELinux is enforced; containers aren't labelled", "")
	case m.SELinux == "0":
		add("selinux", OK, "SELinux is permissive", "")
	default:
		add("selinux", OK, "SELinux is off", "")
	}
	if m.Landlock == 0 {
		add("landlock", OK, "the kernel has no Landlock: mounts alone restrict files, and in process mode nothing does", "")
	} else {
		add("landlock", OK, fmt.Sprintf("Landlock, ABI %d", m.Landlock), "")
	}
	return out
}

// Release judges the kernel's version for the namespace engine.
func Release(release string) Finding {
	f := Finding{Kernel, "release", OK, "Linux " + release, ""}
	if before(release, minMajor, minMinor) {
		f.Level = Warning
		f.Text += fmt.Sprintf(": the namespace engine needs %d.%d or later", minMajor, minMinor)
		f.Do = "use Docker: `workshop --engine docker up`"
	}
	return f
}

// The oldest kernel of the namespace engine: it has mount_setattr(2).
const minMajor, minMinor = 5, 12

func before(release string, major, minor int) bool {
	a, rest, _ := strings.Cut(release, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(a)
	if end := strings.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		b = b[:end]
	}
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && (x < major || x == major && y < minor)
}

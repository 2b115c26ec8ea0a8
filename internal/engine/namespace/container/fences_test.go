//go:build linux

package container

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// report prints what became of something that must be refused.
func report(err error) {
	var errno syscall.Errno
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.As(err, &errno):
		fmt.Println("refused", unix.ErrnoName(errno))
	default:
		fmt.Println("refused", err)
	}
}

// sys is any system call.
func sys(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func init() {
	insides["write"] = func(a []string) { report(os.WriteFile(a[0], []byte("x"), 0o600)) }
	insides["mkdir"] = func(a []string) { report(os.Mkdir(a[0], 0o700)) }
	insides["read"] = func(a []string) {
		b, err := os.ReadFile(a[0])
		if err == nil && len(b) == 0 {
			err = errors.New("empty")
		}
		report(err)
	}
	insides["status"] = func(a []string) {
		b, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(b)) {
			for _, name := range a {
				if strings.HasPrefix(line, name+":") {
					fmt.Println(strings.Join(strings.Fields(line), " "))
				}
			}
		}
	}
	insides["userns"] = func([]string) {
		_, err := syscall.ForkExec("/inside", []string{"/inside", "inside", "exit"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}})
		report(err)
	}
	insides["exit"] = func([]string) {}
	insides["mount"] = func([]string) { report(unix.Mount("none", "/tmp", "tmpfs", 0, "")) }
	insides["mknod"] = func([]string) { report(unix.Mknod("/tmp/sda", unix.S_IFBLK|0o600, 8<<8)) }
	insides["hostname"] = func([]string) { report(os.WriteFile("/proc/sys/kernel/hostname", []byte("x"), 0)) }
	insides["setns"] = func([]string) {
		fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
		}
		report(err)
	}
	insides["descriptors"] = func([]string) {
		for fd := 3; fd < 1024; fd++ {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				fmt.Println("done", fd)
			}
		}
		fmt.Println("refused EBADF")
	}
	insides["tty"] = func([]string) {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0)
		if err == nil {
			b := byte('x')
			err = sys(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
		}
		report(err)
	}
	insides["key"] = func([]string) {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", keyName, 0)
		report(err)
	}
	insides["core"] = func([]string) {
		var r unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_CORE, &r)
		if r.Max == 0 {
			report(unix.EPERM)
		} else {
			report(nil)
		}
	}
	insides["stranger"] = func([]string) { // a process that isn't the container's
		l, _ := os.ReadDir("/proc")
		for _, e := range l {
			if e.Name() != "1" && strings.Trim(e.Name(), "0123456789") == "" {
				report(nil)
				return
			}
		}
		report(unix.ESRCH)
	}
	insides["domain"] = func([]string) {
		var u unix.Utsname
		_ = unix.Uname(&u)
		fmt.Println(unix.ByteSliceToString(u.Nodename[:]), unix.ByteSliceToString(u.Domainname[:]))
	}
	insides["null"] = func([]string) { report(unix.Fchmod(0, 0o666)) } // as it is
	insides["groups"] = func([]string) {
		g, _ := unix.Getgroups()
		fmt.Println(g)
	}
}

const keyName = "workshop-contain-test"

// Each fence as it is seen from inside, and what is seen without it: so it is
// that fence which holds.
func TestFences(t *testing.T) {
	plain := func(c *spec.Container) { c.Landlock = false }
	uid0 := func(c *spec.Container) { c.Landlock, c.Process.UID, c.Process.GID = false, 0, 0 }
	for _, f := range []struct {
		name    string
		as      string // only in this mode
		needs   string // this file of the kernel's
		change  func(*spec.Container)
		args    string
		want    string
		base    string // steps that are never done
		without string // steps that aren't done, with which "done" is printed
		then    string // or this
	}{
		{name: "read-only root", as: "user", change: plain, args: "write /x", want: "refused EROFS", without: "read-only root"},
		{name: "read-only root", as: "root", change: uid0, args: "write /x", want: "refused EROFS", without: "read-only root"},
		{name: "Landlock alone", as: "user", base: "read-only root", args: "write /x", want: "refused EACCES", without: "landlock"},
		{name: "read-only /dev", as: "user", change: plain, args: "write /dev/x", want: "refused EROFS", without: "read-only root,landlock"},
		{name: "Landlock alone", as: "root", base: "read-only root", change: func(c *spec.Container) { uid0(c); c.Landlock = true }, args: "mkdir /x", want: "refused EACCES", without: "landlock"},
		{name: "masked file", change: plain, args: "read /proc/interrupts", want: "refused empty", without: "masks"},
		{name: "masked directory", change: plain, args: "mkdir /sys/firmware/x", want: "refused EROFS", without: "sys", then: "refused ENOENT"},
		{name: "read-only /proc/sys", as: "root", change: uid0, args: "hostname", want: "refused EROFS", without: "masks"},
		// A trigger is the kernel's memory, of which no control group is told.
		{name: "read-only /proc/pressure", change: plain, args: "write /proc/pressure/cpu", needs: "/proc/pressure/cpu", want: "refused EROFS", without: "masks", then: "refused EINVAL"},
		{name: "user namespaces", args: "userns", want: "refused EPERM", without: "seccomp"},
		{name: "mounts by the filter", as: "user", base: "landlock,capabilities,bounding set", args: "mount", want: "refused EPERM", without: "seccomp"},
		{name: "mounts by Landlock", as: "user", base: "seccomp,capabilities,bounding set", args: "mount", want: "refused EPERM", without: "landlock"},
		{name: "mounts by capabilities", as: "user", base: "seccomp,landlock", args: "mount", want: "refused EPERM", without: "capabilities,bounding set"},
		{name: "setns", as: "user", base: "capabilities,bounding set", args: "setns", want: "refused EPERM", without: "seccomp", then: "-"},
		{name: "descriptors", args: "descriptors", want: "refused EBADF", without: "descriptors"},
		{name: "the machine's null device", as: "root", change: uid0, args: "null", want: "refused EROFS", without: "descriptors"},
		{name: "the null device", as: "user", args: "null", want: "refused EROFS", without: "descriptors", then: "refused EPERM"},
		{name: "terminal", args: "tty", want: "refused ENXIO"},
		{name: "session keyring, without a filter", change: plain, args: "key", want: "refused EPERM", without: "seccomp,keyring"},
		{name: "core", args: "core", want: "refused EPERM", without: "limits"},
		{name: "processes", args: "stranger", want: "refused ESRCH", without: "proc", then: "-"},
		{name: "mknod", as: "root", change: uid0, args: "mknod", want: "refused EPERM", without: "capabilities,bounding set,ids", then: "done"},
		{name: "names", args: "domain", want: "workshop (none)", without: "hostname", then: "-"},
		{name: "groups", args: "groups", want: "[]"},
		{name: "no_new_privs", change: plain, args: "status NoNewPrivs", want: "NoNewPrivs: 1", without: "no_new_privs,seccomp", then: "NoNewPrivs: 0"},
		{name: "seccomp", args: "status Seccomp", want: "Seccomp: 2", without: "seccomp", then: "Seccomp: 0"},
		{name: "bounding set", args: "status CapBnd", want: "CapBnd: 0000000000000000", without: "bounding set", then: "-"},
		{name: "capabilities", as: "user", args: "status CapEff", want: "CapEff: 0000000000000000", without: "capabilities,bounding set", then: "-"},
	} {
		for _, mode := range modes() {
			if _, err := os.Stat(f.needs); f.as != "" && f.as != mode || f.needs != "" && err != nil {
				continue
			}
			t.Run(f.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				c := container(mode, strings.Fields(f.args)...)
				c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Tmpfs, Target: "/tmp", Size: 1 << 20, Mode: 0o1777})
				if f.change != nil {
					f.change(c)
				}
				got := run(t, mode, job{Spec: c, Without: f.base, Leak: true})
				if out := strings.TrimSpace(got.Out); out != f.want || got.Err != "" {
					t.Errorf("%+v; want %q", got, f.want)
				}
				if f.without == "" {
					return
				}
				want := f.then
				if want == "" {
					want = "done"
				}
				got = run(t, mode, job{Spec: c, Without: strings.Trim(f.base+","+f.without, ","), Leak: true})
				out := strings.TrimSpace(got.Out)
				if want == "-" && (out == f.want && got.Err == "") || want != "-" && !strings.HasPrefix(out, want) {
					t.Errorf("without %s: %+v; want %q: then this fence isn't what holds", f.without, got, want)
				}
			})
		}
	}
}

//go:build linux

package container

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// What the filter alone refuses: without it the kernel would at least look at
// the arguments.
var filtered = []struct {
	name   string
	number uintptr
	args   []uintptr
	errno  syscall.Errno
}{
	{"keyctl", unix.SYS_KEYCTL, []uintptr{unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2)}, unix.EPERM}, // the session's
	{"add_key", unix.SYS_ADD_KEY, nil, unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, []uintptr{1}, unix.EPERM},
	{"bpf", unix.SYS_BPF, []uintptr{^uintptr(0)}, unix.EPERM},
	{"clone3", unix.SYS_CLONE3, nil, unix.ENOSYS},
	{"kcmp", unix.SYS_KCMP, nil, unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, []uintptr{^uintptr(0)}, unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, []uintptr{^uintptr(0)}, unix.EPERM},
	{"setns", unix.SYS_SETNS, []uintptr{^uintptr(0)}, unix.EPERM},
	{"vsock", unix.SYS_SOCKET, []uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EPERM},
	{"vsock with high bits", unix.SYS_SOCKET, []uintptr{1<<32 | unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EPERM},
	{"alg", unix.SYS_SOCKET, []uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EPERM},
	{"lease", unix.SYS_FCNTL, []uintptr{^uintptr(0), unix.F_SETLEASE}, unix.EPERM},
	{"lease with high bits", unix.SYS_FCNTL, []uintptr{^uintptr(0), 1<<32 | unix.F_SETLEASE}, unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, []uintptr{^uintptr(0)}, unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, []uintptr{0, 0, 0, 0, ^uintptr(0)}, unix.EPERM},
	{"unshare", unix.SYS_UNSHARE, []uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}, unix.EPERM},
}

func init() {
	insides["filtered"] = func([]string) {
		for _, c := range filtered {
			err := sys(c.number, c.args...)
			errno, _ := err.(syscall.Errno)
			fmt.Printf("%s=%s\n", c.name, unix.ErrnoName(errno))
		}
	}
	insides["abstract"] = func(a []string) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: a[0]})
		}
		report(err)
	}
	insides["signal"] = func(a []string) {
		pid, _ := strconv.Atoi(a[0])
		report(unix.Kill(pid, 0))
	}
	insides["upwards"] = func([]string) { // every known way to a root above one's own
		for _, p := range []string{"/..", "/../..", "/proc/1/root/..", "/proc/self/root/../..", "/proc/1/cwd/../..", "/proc/self/task/1/root"} {
			fd, err := unix.Open(p, unix.O_PATH, 0)
			if err != nil {
				fmt.Println(p, err)
				continue
			}
			id, _ := mountID(fd)
			top, _ := openID("/")
			fmt.Println(p, id == top)
		}
		l, _ := os.ReadDir("/proc")
		n := 0
		for _, e := range l {
			if _, err := strconv.Atoi(e.Name()); err == nil {
				n++
			}
		}
		fmt.Println(n)
	}
}

func TestFiltered(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		with := lines(run(t, mode, job{Spec: container(mode, "filtered")}).Out)
		c := container(mode, "filtered")
		c.Landlock = false
		without := lines(run(t, mode, job{Spec: c, Without: "seccomp"}).Out)
		if len(with) != len(filtered) || len(without) != len(filtered) {
			t.Fatalf("%q\n%q", with, without)
		}
		same := 0
		for i, f := range filtered {
			if want := f.name + "=" + unix.ErrnoName(f.errno); with[i] != want {
				t.Errorf("%s, want %s", with[i], want)
			}
			if with[i] == without[i] { // forbidden to all without capabilities on some machines
				same++
				t.Logf("without the filter too: %s", with[i])
			}
		}
		if same > 5 {
			t.Errorf("%d of %d are refused without the filter: %q", same, len(filtered), without)
		}
	})
}

func TestUpwards(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		for _, image := range []bool{false, true} {
			c := container(mode, "upwards")
			if image {
				c.Root.Dir = testDir(t, mode)
			}
			got := run(t, mode, job{Spec: c})
			if want := "/.. true\n/../.. true\n/proc/1/root/.. true\n/proc/self/root/../.. true\n/proc/1/cwd/../.. true\n/proc/self/task/1/root true\n1\n"; got.Out != want || got.Err != "" {
				t.Errorf("image %v: %+v; want %q", image, got, want)
			}
		}
	})
}

// In the machine's network, as the guard is, the machine's abstract sockets are
// out of reach.
func TestAbstractSockets(t *testing.T) {
	name := fmt.Sprintf("@workshop-contain-%d", os.Getpid())
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "abstract", name)
		if got := run(t, mode, job{Spec: c}); got.Out != "refused ECONNREFUSED\n" { // another network, no such socket
			t.Errorf("%+v", got)
		}
		c.Network.Mode = spec.NetHost
		if got := run(t, mode, job{Spec: c}); got.Out != "refused EPERM\n" {
			t.Errorf("%+v", got)
		}
		// Each of the two refuses it alone: Landlock does from Linux 6.12 on.
		for without, want := range map[string]string{"landlock": "refused EPERM\n", "seccomp": "refused EPERM\n", "landlock,seccomp": "done\n"} {
			if got := run(t, mode, job{Spec: c, Without: without}); got.Out != want {
				t.Errorf("without %s: %+v", without, got)
			}
		}
		c = container(mode, "signal", strconv.Itoa(os.Getpid()))
		if got := run(t, mode, job{Spec: c}); !strings.HasPrefix(got.Out, "refused") {
			t.Errorf("%+v", got)
		}
	})
}

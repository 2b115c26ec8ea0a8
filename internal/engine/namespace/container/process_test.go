//go:build linux

package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func init() {
	insides["hello"] = func([]string) { fmt.Println("hello", os.Getpid(), os.Getuid(), os.Getgid()) }
	insides["process"] = func(a []string) {
		cwd, _ := os.Getwd()
		host, _ := os.Hostname()
		var nofile, nproc unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &nofile)
		_ = unix.Getrlimit(unix.RLIMIT_NPROC, &nproc)
		sid, _ := unix.Getsid(0)
		fmt.Println(a, cwd, host, nproc.Cur, nproc.Max, nofile.Max, sid, os.Getenv("A"), len(os.Environ()))
		fmt.Printf("umask %03o\n", unix.Umask(0))
		b, _ := os.ReadFile("/proc/self/oom_score_adj")
		fmt.Printf("oom %s", b)
		os.Exit(7)
	}
	insides["die"] = func([]string) {
		_ = unix.Kill(1, unix.SIGKILL) // of PID 1 to itself: nothing
		*(*int)(nil) = 0
	}
	insides["files"] = func([]string) {
		for fd := 3; fd < 5; fd++ {
			var buf [64]byte
			n, err := unix.Read(fd, buf[:])
			fmt.Printf("%d %q %v\n", fd, buf[:max(n, 0)], err)
		}
		_, err := unix.FcntlInt(5, unix.F_GETFD, 0)
		fmt.Println(err)
	}
	insides["network"] = func([]string) {
		list, _ := net.Interfaces()
		for _, i := range list {
			fmt.Println(i.Name, i.Flags&net.FlagUp != 0)
		}
		l, _ := os.ReadDir("/sys/class/net")
		fmt.Println(l)
		_, err := net.Listen("tcp", "127.0.0.1:80")
		report(err)
	}
	insides["room"] = func([]string) {
		insides["status"]([]string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Uid"})
		// CAP_NET_ADMIN in its own network, and nowhere else.
		report(loopback())
		l, err := net.Listen("tcp", "127.0.0.1:80")
		report(err)
		if err == nil {
			l.Close()
		}
		report(unix.Sethostname([]byte("x")))
		time.Sleep(time.Hour)
	}
	insides["group"] = func([]string) {
		b, _ := os.ReadFile("/proc/self/cgroup")
		for line := range strings.Lines(string(b)) {
			fmt.Println(strings.TrimSpace(line), "-")
		}
		found, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
		here, _ := filepath.Glob("/sys/fs/cgroup/cgroup.procs")
		for _, p := range append(found, here...) {
			b, _ := os.ReadFile(p)
			fmt.Println("procs", strings.Fields(string(b)))
			var errno syscall.Errno
			errors.As(os.WriteFile(p, []byte("0"), 0), &errno)
			fmt.Println("write", unix.ErrnoName(errno))
			errors.As(os.Mkdir(filepath.Dir(p)+"/x", 0o755), &errno)
			fmt.Println("mkdir", unix.ErrnoName(errno))
		}
	}
	insides["netns"] = func([]string) { fmt.Println(os.Readlink("/proc/self/ns/net")) }
}

func TestHello(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		r := run(t, mode, job{Spec: container(mode, "hello")})
		uid, gid := ids(mode)
		if want := fmt.Sprintf("hello 1 %d %d\n", uid, gid); r.Err != "" || r.Out != want {
			t.Errorf("%+v; want %q", r, want)
		}
	})
}

func TestProcess(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "process", "a b", "")
		c.Process.Env = append(c.Process.Env, "A=b c")
		c.Process.Cwd = "/made/here"
		c.Rlimits = []spec.Rlimit{{Name: "nproc", Soft: 500, Hard: 600}, {Name: "nofile", Soft: 100, Hard: 1000}}
		c.OOMScore = 500
		got := run(t, mode, job{Spec: c})
		if want := "[a b ] /made/here workshop 500 600 1000 1 b c 3\numask 022\noom 500\n"; got.Err != "" || got.Out != want || got.Exit != 7 {
			t.Errorf("%+v; want %q", got, want)
		}
		if got := run(t, mode, job{Spec: container(mode, "die")}); got.Exit != 2 || !strings.Contains(got.Out, "nil pointer") {
			t.Errorf("%+v", got)
		}
	})
}

func TestFiles(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		got := run(t, mode, job{Spec: container(mode, "files"), Files: []string{"three", "four"}})
		if want := "3 \"three\" <nil>\n4 \"four\" <nil>\nbad file descriptor\n"; got.Err != "" || got.Out != want {
			t.Errorf("%+v; want %q", got, want)
		}
	})
}

func TestNetworks(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "network")
		got := run(t, mode, job{Spec: c})
		if want := "lo true\n[L lo]\nrefused EACCES\n"; got.Err != "" || got.Out != want {
			t.Errorf("none: %+v; want %q", got, want)
		}
		c.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "80"}
		got = run(t, mode, job{Spec: c})
		if want := "lo true\n[L lo]\ndone\n"; got.Err != "" || got.Out != want {
			t.Errorf("with a sysctl: %+v; want %q", got, want)
		}

		room := container(mode, "room")
		room.Capabilities = []string{"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"}
		room.Network.Mode = spec.NetRoom
		if mode == "root" {
			room.Process.UID, room.Process.GID = 0, 0
		}
		c = container(mode, "netns")
		c.Network = spec.Network{Mode: spec.NetJoin, Of: "room"}
		joined := run(t, mode, job{Spec: c, Room: room})
		c.Network = spec.Network{Mode: spec.NetHost}
		host := run(t, mode, job{Spec: c})
		mine, _ := os.Readlink("/proc/self/ns/net")
		if joined.Err != "" || host.Err != "" || !strings.HasPrefix(joined.Out, "net:[") || joined.Out == host.Out || !strings.HasPrefix(host.Out, mine) {
			t.Errorf("joined %+v, host %+v, the test's %s", joined, host, mine)
		}
		c = container(mode, "network")
		c.Network = spec.Network{Mode: spec.NetJoin, Of: "room"}
		if got := run(t, mode, job{Spec: c, Room: room}); got.Err != "" || !strings.HasSuffix(got.Out, "[L lo]\nrefused EACCES\n") {
			t.Errorf("joined: %+v", got)
		}
		c.Network = spec.Network{Mode: spec.NetHost}
		if got := run(t, mode, job{Spec: c}); got.Err != "" || !strings.Contains(got.Out, "[]") {
			t.Errorf("in the machine's network /sys is not empty: %+v", got)
		}
	})
}

// The room's capabilities are the two, in all sets.
func TestRoom(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		c := container(mode, "room")
		c.Capabilities = []string{"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"}
		c.Network.Mode = spec.NetRoom
		uid, gid := ids(mode)
		if mode == "root" {
			uid, gid = 0, 0
		}
		c.Process.UID, c.Process.GID = uid, gid
		got := runFor(t, mode, job{Spec: c}, 500*time.Millisecond)
		const set = "0000000000001400"
		want := fmt.Sprintf("Uid: %[1]d %[1]d %[1]d %[1]d\nCapInh: %[2]s\nCapPrm: %[2]s\nCapEff: %[2]s\nCapBnd: %[2]s\nCapAmb: %[2]s\ndone\ndone\nrefused EPERM\n", uid, set)
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	})
}

// runFor returns what a container prints in a time.
func runFor(t *testing.T, mode string, j job, d time.Duration) string {
	t.Helper()
	j.KillAfter = d
	got := run(t, mode, j)
	if got.Err != "" {
		t.Fatal(got.Err)
	}
	return got.Out
}

// What stops a start, in words.
func TestErrors(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		for _, c := range []struct {
			change func(*spec.Container)
			want   string
			as     string
		}{
			{change: func(c *spec.Container) { c.Process.Args[0] = "/missing" }, want: "execute /missing"},
			{change: func(c *spec.Container) { c.Process.Args[0] = "/usr" }, want: "execute /usr"},
			{change: func(c *spec.Container) { c.Process.UID = 12345 }, want: "uid 12345 isn't mapped here: without root containers run with the caller's own ids", as: "user"},
			{change: func(c *spec.Container) { c.Process.GID = 12345 }, want: "gid 12345 isn't mapped", as: "user"},
			{change: func(c *spec.Container) {
				c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Tmpfs, Target: "/t", Size: 4096, UID: 12345})
			}, want: "tmpfs at /t: size 4096, owner 12345:0: uid=12345: invalid argument", as: "user"},
			{change: func(c *spec.Container) { c.Process.Cwd = "/inside" }, want: "the working directory /inside"},
			{change: func(c *spec.Container) { c.Process.Cwd = "/inside/x" }, want: "the working directory /inside/x: not a directory"},
			{change: func(c *spec.Container) { c.Root.Dir = "/missing" }, want: "the root /missing: no such file"},
			{change: func(c *spec.Container) { c.Sysctls = map[string]string{"net.missing": "1"} }, want: "the sysctl net.missing=1: no such file"},
			{change: func(c *spec.Container) { c.Rlimits = []spec.Rlimit{{Name: "nofile", Soft: 1 << 40, Hard: 1 << 40}} }, want: "the limit nofile 1099511627776"},
			{change: func(c *spec.Container) { c.OOMScore = -900 }, want: "oom_score_adj -900: ", as: "user"},
			{change: func(c *spec.Container) { c.Seccomp = slices.Repeat([]byte{0xff}, 16) }, want: "the seccomp filter: invalid argument"},
		} {
			if c.as != "" && c.as != mode {
				continue
			}
			s := container(mode, "hello")
			c.change(s)
			if got := run(t, mode, job{Spec: s}); !strings.HasPrefix(got.Err, "container test-worker-1: ") || !strings.Contains(got.Err, c.want) {
				t.Errorf("%+v; want %q", got, c.want)
			}
		}
		if got := run(t, mode, job{Spec: container(mode, "hello"), NoCgroup: true}); !strings.Contains(got.Err, "its control group: no room in the group") {
			t.Errorf("%+v", got)
		}
	})
}

// Main is nothing for others to call.
func TestMainAlone(t *testing.T) {
	var b strings.Builder
	for _, args := range [][]string{nil, {"3"}, {"2"}, {"x"}, {"3", "4"}, {"2", "network"}} {
		if code := Main(args, &b, &b); code != 2 {
			t.Errorf("%q: %d", args, code)
		}
	}
	if !strings.Contains(b.String(), "to be started by a supervisor") {
		t.Error(b.String())
	}
}

// A real group as small as a room's: the start fits in it, the container sees
// itself at its top, and can change nothing of it.
func TestGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("as root")
	}
	c := container("root", "group")
	c.Landlock, c.Process.UID, c.Process.GID = false, 0, 0
	got := run(t, "root", job{Spec: c, Group: true})
	for _, line := range lines(got.Out) {
		if f := strings.Fields(line); len(f) != 2 || f[1] != "[1]" && f[1] != "EROFS" && !strings.HasSuffix(f[0], ":/") {
			t.Errorf("%q", line)
		}
	}
	if got.Err != "" || !strings.Contains(got.Out, "procs [1]") || !strings.Contains(got.Out, "write EROFS") || strings.Contains(got.Out, "write <nil>") {
		t.Errorf("%+v", got)
	}
}

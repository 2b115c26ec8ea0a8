//go:build linux

package supervisor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// status is a line of /proc/PID/status, of every thread the same.
func (w *world) status(key string) string {
	tasks, err := filepath.Glob("/proc/" + itoa(w.pid) + "/task/*/status")
	w.must(err)
	value := ""
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			continue // it ended
		}
		for line := range strings.Lines(string(b)) {
			text, ok := strings.CutPrefix(line, key+":")
			if text = strings.TrimSpace(text); ok && value != "" && value != text {
				w.Errorf("threads differ in %s: %s, %s", key, value, text)
			} else if ok {
				value = text
			}
		}
	}
	return value
}

// TestConfined: what the supervisor itself can do.
func TestConfined(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.up(w.shell("one", sleeper))
		var keep uint64
		for _, c := range kept {
			keep |= 1 << c
		}
		if w.mode == "user" {
			keep |= 1 << unix.CAP_NET_RAW
		}
		for _, set := range []string{"CapBnd", "CapPrm", "CapEff", "CapInh", "CapAmb"} {
			var got uint64
			if _, err := fmt.Sscanf(w.status(set), "%x", &got); err != nil || got&^keep != 0 {
				t.Errorf("%s: %x beside %x, %v", set, got&^keep, keep, err)
			}
		}
		for _, c := range []int{unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_MKNOD, unix.CAP_BPF, unix.CAP_SYS_BOOT, unix.CAP_NET_RAW} {
			if c == unix.CAP_NET_RAW && w.mode == "user" {
				continue // it may not ask whether netfilter is there, and has no network but its own
			}
			if keep&(1<<c) != 0 {
				t.Errorf("capability %d is kept", c)
			}
		}
		if got := w.status("NoNewPrivs"); got != "1" {
			t.Errorf("no_new_privs: %q", got)
		}
		if w.mode == "user" {
			// Not dumpable: its files in /proc are root's.
			if _, err := os.ReadDir("/proc/" + itoa(w.pid) + "/fd"); err == nil {
				t.Error("it is dumpable")
			}
		}
		if w.mode == "root" { // it was started with a pipe at 3
			all, err := os.ReadDir("/proc/" + itoa(w.pid) + "/fd")
			w.must(err)
			for _, fd := range all {
				to, _ := os.Readlink("/proc/" + itoa(w.pid) + "/fd/" + fd.Name())
				if to == w.pipe || fd.Name() == "251" && strings.HasPrefix(to, "pipe:") {
					t.Errorf("it holds its caller's %s at %s", to, fd.Name())
				}
			}
		}
		// Its mounts are its own, and none of ours.
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		w.must(err)
		if strings.Count(string(mounts), " /proc ") != 1 {
			t.Errorf("our /proc:\n%s", mounts)
		}
		info, err := os.Stat(w.dir + "/" + api.SocketName)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		for _, name := range []string{api.StateName, api.LockName} {
			if info, err := os.Stat(w.dir + "/" + name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	})
}

// TestInside: what a container sees of its supervisor.
func TestInside(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		program, _ := binaries()
		for _, role := range []spec.Role{spec.Worker, spec.Guard} {
			name := "fds-" + string(role)
			c := w.shell(name, "")
			want := "3" // what Go's runtime opens for itself is closed at exec: 0, 1, 2
			if role == spec.Guard {
				c = w.guard(spec.Port{Address: free(t, "127.0.0.1"), Target: 80}, spec.Port{Address: free(t, "127.0.0.1"), Target: 81})
				c.Service, c.Restart, want = name, "", "6"
			}
			c.Mounts = []spec.Mount{{Type: spec.Bind, Source: program, Target: "/init", ReadOnly: true}}
			c.Process.Args = []string{"/init", "descriptors"}
			w.run(c)
			_, err := w.Ready(t.Context(), name)
			w.must(err)
			// The runtime's own epoll, eventfd and the directory come later.
			if got := strings.Fields(w.log(name)); len(got) != 2 || got[0] != want {
				t.Errorf("%s has descriptors %q, want %s", name, got, want)
			}
		}
		// A worker that is shown the socket is refused all the same.
		c := w.shell("curious", sleeper)
		c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: w.dir, Target: "/state"}, spec.Mount{Type: spec.Bind, Source: program, Target: "/init", ReadOnly: true})
		c.Process.Args = []string{"/init", "connect", "/state/" + api.SocketName}
		if w.mode == "root" {
			c.Process.UID, c.Process.GID = 0, 0
		}
		w.run(c)
		_, err := w.Ready(t.Context(), "curious")
		w.must(err)
		if got := w.log("curious"); strings.Contains(got, "hello") || !strings.Contains(got, "ended") {
			t.Errorf("a worker speaks with the supervisor: %q", got)
		}
		// Nested user namespaces are closed, as an ordinary user by the supervisor.
		if w.mode == "user" {
			c := w.shell("nested", "unshare -Ur true && echo made; cat /proc/sys/user/max_user_namespaces")
			c.Seccomp = allowAll
			w.run(c)
			_, err := w.Ready(t.Context(), "nested")
			w.must(err)
			if got := w.log("nested"); strings.Contains(got, "made") || !strings.Contains(got, "0\n") {
				t.Errorf("%q", got)
			}
		}
	})
}

// allowAll is the filter that allows everything: BPF_RET|BPF_K,
// SECCOMP_RET_ALLOW.
var allowAll = []byte{6, 0, 0, 0, 0, 0, 0xff, 0x7f}

// TestLimits: what a container uses is limited, counted, and nothing is left of
// the group.
func TestLimits(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("limits are tried as root")
	}
	w := newWorld(t, "root")
	w.start()
	if h, err := w.Hello(t.Context()); err != nil || h.Cgroup == "" {
		t.Fatalf("%+v, %v", h, err)
	}
	w.up(w.shell("quiet", sleeper))
	if got := w.groups(); len(got) == 0 {
		t.Error("it has no group")
	}
	w.run(w.shell("eater", "x=$(head -c 300M /dev/zero | tr '\\0' x); echo $?"))
	if r, err := w.Ready(t.Context(), "eater"); err != nil || !r.OOM || r.ExitCode != 137 {
		t.Errorf("%+v, %v", r, err)
	}
	if s := w.seen("eater"); !s.OOMKilled {
		t.Errorf("%+v", s.State)
	}
	forks := w.shell("forks", "for i in $(seq 100); do sleep 1000 & done; echo READY; wait")
	forks.Limits.PIDs = 16
	w.run(forks)
	if r, err := w.Ready(t.Context(), "forks"); err != nil || r.Ready {
		t.Errorf("%+v, %v", r, err)
	}
	f, err := client.State(w.dir)
	if err != nil || len(f.CgroupDirs) == 0 || !strings.Contains(strings.Join(w.groups(), " "), f.CgroupDirs[0]+"/"+f.Cgroup) {
		t.Errorf("%q, %q, %v; groups %q", f.CgroupDirs, f.Cgroup, err, w.groups())
	}
	// What a supervisor leaves that is killed, the next one removes.
	w.kill()
	if got := w.groups(); len(got) == 0 {
		t.Error("nothing is left to clean up")
	}
	w.start()
	if got := w.groups(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	w.must(w.Shutdown(t.Context()))
}

// TestLongPath: a state directory whose path is longer than a socket's address.
func TestLongPath(t *testing.T) {
	eachMode(t, func(t *testing.T, short *world) {
		w := newWorld(t, short.mode)
		w.must(os.Remove(w.dir))
		w.dir += strings.Repeat("/a-long-name", 20)
		w.must(os.MkdirAll(w.dir, 0o700))
		w.start()
		w.up(w.shell("one", sleeper))
		w.must(w.Shutdown(t.Context()))
	})
}

// TestNotStartedSo: anything but what the CLI does is refused.
func TestNotStartedSo(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		// A file in the place of the socket.
		w.must(w.Shutdown(t.Context()))
		w.must(os.Mkdir(w.dir+"/"+api.SocketName, 0o700))
		if line, _, _ := w.begin(); !strings.HasPrefix(line, "FAILED ") || !strings.Contains(line, "can't be removed") {
			t.Errorf("%q", line)
		}
		w.must(os.Remove(w.dir + "/" + api.SocketName))
		// A socket that nobody listens on.
		l, err := net.Listen("unix", w.dir+"/"+api.SocketName)
		w.must(err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		begin := testutil.Now()
		if _, err := client.Dial(t.Context(), w.dir); err != client.ErrNone || testutil.Since(begin) > time.Second {
			t.Error(err)
		}
		w.start()
	})
}

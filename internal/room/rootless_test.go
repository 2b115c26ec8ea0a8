//go:build linux

package room

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/nflog"
	"github.com/llmdo/workshop/internal/room/handover"
)

// caller is who starts a rootless room, and what its processes are on the machine.
const caller = 1000

// becomeRoom is what stands between a user namespace of the caller's and its
// room: with all capabilities there it makes the packet sockets, and goes on as a
// room with the room's capabilities. role is the next one.
func becomeRoom(role string) int {
	list, err := packetSockets()
	if err == nil {
		err = keepAmbient(roomCapabilities)
	}
	if err == nil {
		os.Setenv(roleVariable, role)
		err = syscall.Exec("/proc/self/exe", append(os.Args, "--packet-fds", list), os.Environ())
	}
	fmt.Println(err)
	return 1
}

// keepAmbient leaves what the thread executes these capabilities, whoever it is.
func keepAmbient(keep uint64) error {
	if err := limitCapabilities(keep); err != nil {
		return err
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if keep&(1<<c) != 0 {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0); err != nil {
				return err
			}
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// rootlessRoom starts a room in a user namespace of the caller's, which maps the
// caller alone.
func rootlessRoom(t *testing.T, role string, args ...string) *testRoom {
	t.Helper()
	requireRoot(t)
	r := launchRoom(t, func(cmd *exec.Cmd) {
		os.Chown(flagValue(cmd.Args, "--dir"), caller, caller)
		cmd.Env = append(cmd.Env, roleVariable+"="+role)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Pdeathsig:                  unix.SIGKILL,
			Cloneflags:                 unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
			UidMappings:                []syscall.SysProcIDMap{{ContainerID: caller, HostID: caller, Size: 1}},
			GidMappings:                []syscall.SysProcIDMap{{ContainerID: caller, HostID: caller, Size: 1}},
			GidMappingsEnableSetgroups: false,
			Credential:                 &syscall.Credential{Uid: caller, Gid: caller, NoSetGroups: true},
			AmbientCaps:                allCapabilities(),
		}
	}, args...)
	if line := <-r.said; line != "READY" {
		t.Fatalf("the room said %q", line)
	}
	return r
}

// becomeCaller makes the thread one of the caller's where a user namespace is
// wanted: who makes it owns it.
func becomeCaller(a *syscall.SysProcAttr) error {
	if a.Cloneflags&unix.CLONE_NEWUSER == 0 {
		return nil
	}
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.Syscall(call, caller, caller, caller); errno != 0 {
			return errno
		}
	}
	// Else nobody but root may write the maps of what it starts.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

func allCapabilities() (all []uintptr) {
	for c := range unix.CAP_LAST_CAP + 1 {
		all = append(all, uintptr(c))
	}
	return all
}

func flagValue(args []string, name string) string {
	for i, a := range args[:len(args)-1] {
		if a == name {
			return args[i+1]
		}
	}
	return ""
}

// inUserNamespace runs an attack as a worker of a rootless room: in its user
// namespace, as the caller, without capabilities.
func (r *testRoom) inUserNamespace(role string) string {
	r.t.Helper()
	// A Go process can't enter a user namespace: it has threads. Its owner may, and
	// has no capability there after the next exec.
	cmd := exec.Command("setpriv", "--reuid", strconv.Itoa(caller), "--regid", strconv.Itoa(caller), "--clear-groups", "--no-new-privs",
		"nsenter", "--user=/proc/self/fd/3", "--net=/proc/self/fd/4", "--preserve-credentials", "--", r.copySelf())
	for _, kind := range []string{"user", "net"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", r.cmd.Process.Pid, kind))
		if err != nil {
			r.t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("%s: %v %s", role, err, errs.String())
	}
	seen, ms, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if n, err := strconv.Atoi(ms); err != nil || n > int(patience/2/time.Millisecond) {
		r.t.Errorf("%s: took %s ms", role, ms)
	}
	return seen
}

// copySelf is the test binary where everybody may reach it.
func (r *testRoom) copySelf() string {
	r.t.Helper()
	path := r.dir + "/self"
	if _, err := os.Stat(path); err == nil {
		return path
	}
	b, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, b, 0o755)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return path
}

// TestRootless: a room of either kind is one in a user namespace too, where its
// maker has no right on the machine: packets, refusals with exact counts, the uid
// that NFLOG tells, new ports.
func TestRootless(t *testing.T) {
	for kind, role := range map[handover.Kind]string{
		handover.NFTables: "room of a user namespace",
		handover.AnyIP:    "room of a user namespace without netfilter",
	} {
		t.Run("kind "+string(kind), func(t *testing.T) {
			r := rootlessRoom(t, role, "--guard-uid", strconv.Itoa(caller), "--fallback", "anyip")
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
			for _, want := range []string{
				fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", caller, caller, caller, caller),
				fmt.Sprintf("CapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\n", roomCapabilities, roomCapabilities, roomCapabilities),
				"NoNewPrivs:\t1\n",
			} {
				if err != nil || !strings.Contains(string(status), want) {
					t.Fatalf("no %q: %v\n%s", want, err, status)
				}
			}
			c := r.clientAs(caller)
			s, err := c.Sockets()
			if err != nil || s.Kind != kind {
				t.Fatalf("%q %v", s.Kind, err)
			}
			defer s.Close()
			var log <-chan nflog.Packet
			if kind == handover.NFTables {
				log = packetsOf(s)
			} else {
				log = refused(s)
			}
			expect := func(role, want string) {
				t.Helper()
				if seen := r.inUserNamespace(role); seen != want {
					t.Errorf("%s: saw %s, want %s", role, seen, want)
				}
			}
			udp := map[handover.Kind]string{handover.NFTables: "EPERM", handover.AnyIP: "ECONNREFUSED"}[kind]
			for family, addr := range outside {
				expect("dial tcp"+family+" "+addr+" 443", "ok")
				expect("dial tcp"+family+" "+addr+" 22", "ECONNREFUSED")
				expect("dial udp"+family+" "+addr+" 123", udp)
			}
			if n, err := c.Counters(); err != nil || n.Denied4 != 2 || n.Denied6 != 2 {
				t.Errorf("counters: %+v %v", n, err)
			}
			for range 4 {
				select {
				case p := <-log:
					// The uid is that of the user namespace, which is the machine's.
					if p.HasUID != (kind == handover.NFTables) || p.HasUID && p.UID != caller {
						t.Errorf("%+v", p)
					}
				case <-time.After(2 * time.Second):
					t.Fatal("an event is missing")
				}
			}
			ports := []firewall.PortRange{{First: 22, Last: 22}, {First: 9000, Last: 9000}}
			got, err := c.Redirect(ports)
			if err != nil {
				t.Fatal(err)
			}
			for family, addr := range outside {
				expect("dial tcp"+family+" "+addr+" 22", "ok")
			}
			for _, l := range got {
				l.File.Close()
			}
			f, err := c.DialSocket(8080)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			for _, port := range []string{"53", "443", "531", "536"} {
				expect("bind tcp 127.0.0.1 "+port, "EACCES")
			}
			for _, what := range []string{"route", "loup", "raw", "rules"} {
				expect(what, "EPERM")
			}
			// A burst of denials waits: as much as the machine lets the caller have.
			shown := s.NFLog
			if kind == handover.AnyIP {
				shown = s.Refused4
			}
			size, err := unix.GetsockoptInt(int(shown.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUF)
			if want := receiveMax(t); err != nil || size < min(2*want, 2<<20) {
				t.Errorf("receive buffer: %d of %d, %v", size, 2*want, err)
			}
		})
	}
}

// clientAs connects as a guard that is another user.
func (r *testRoom) clientAs(uid int) (c *handover.Client) {
	r.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_, _, errno := unix.Syscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		err := error(errno)
		if errno == 0 {
			c, err = handover.Dial(context.Background(), r.path())
		}
		done <- err
	}()
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// receiveMax is net.core.rmem_max.
func receiveMax(t *testing.T) int {
	b, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// anyIPRoom becomes a room on a kernel without netfilter.
func anyIPRoom() int {
	runtime.LockOSThread()
	err := testutil.WithoutNetfilter()
	var list []string
	if err == nil {
		var fds []int
		fds, err = kernelsupport.PacketSockets()
		for _, fd := range fds {
			unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
			list = append(list, strconv.Itoa(fd))
		}
	}
	if err == nil {
		os.Setenv("GUARD_TEST_ROLE", "room")
		err = syscall.Exec("/proc/self/exe", append(os.Args, "--fallback", "anyip", "--packet-fds", strings.Join(list, ",")), os.Environ())
	}
	fmt.Println(err)
	return 1
}

// anyIPWorld is newWorld with rooms by AnyIP.
func anyIPWorld(t *testing.T, p firewall.Policy) *world {
	w := buildWorld(t, p)
	w.anyIP = true
	w.startRooms()
	w.startGuard()
	return w
}

// TestAnyIP: the same guard serves a room without netfilter: names, pinned
// addresses, ranges, denials with exact counts (B23–B25, B28), and its
// replacement (B29).
func TestAnyIP(t *testing.T) {
	w := anyIPWorld(t, restricted(t, "allowed.example.org", "ssh.example.org:22", "198.51.100.192/26:9000"))
	if r := w.state().Rooms[0]; !r.Served || r.Kind != "anyip" {
		t.Errorf("%+v", r)
	}
	servers := []string{"10.0.0.1:53", "127.0.0.1:53"}
	if w.in.IPv6 {
		servers = append(servers, "[2001:db8::53]:53", "[::1]:53")
	}
	for _, server := range servers {
		for _, network := range []string{"udp", "tcp"} {
			if got := addrs(w.ask("room", network, server, "allowed.example.org", dns.TypeA)); len(got) != 1 || got[0] != testnet.Allowed {
				t.Errorf("%s %s: %v", network, server, got)
			}
		}
	}
	for _, to := range w.families(testnet.Allowed, testnet.Allowed6) {
		if _, err := w.tls("room", net.JoinHostPort(to, "443"), "allowed.example.org"); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	w.carried("room", "198.51.100.200:9000")
	const n = 50
	for range n {
		w.refused("room", "198.51.100.90:22") // by the guard
		if _, err := w.dial("room", "tcp", "198.51.100.91:23"); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err) // by the kernel
		}
		c := w.mustDial("room", "udp", "198.51.100.92:5000")
		c.Write([]byte("x"))
		c.Close()
		w.refused("room", "127.0.0.1:443") // no denial: the worker's own
	}
	match := func(kind, addr string) func(event) bool {
		return func(e event) bool { return e.Verdict == "deny" && e.Kind == kind && e.Address == addr }
	}
	w.guard.eventually(n, "tcp", match("tcp", "198.51.100.90"))
	w.guard.eventually(n, "kernel tcp", match("kernel", "198.51.100.91"))
	w.guard.eventually(n, "kernel udp", match("kernel", "198.51.100.92"))
	w.guard.eventually(3*n, "all", func(e event) bool { return e.Verdict == "deny" })
	if r := w.state().Rooms[0]; r.Refused != 2*n {
		t.Errorf("refused: %d", r.Refused)
	}

	w.guard.kill()
	if _, err := w.dial("room", "tcp", "198.51.100.91:23"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Error(err)
	}
	waiting := w.mustDial("room", "tcp", "198.51.100.201:9000")
	io.WriteString(waiting, "y")
	w.startGuard()
	if _, err := waiting.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection in the backlog wasn't served: %v", err)
	}
	w.guard.eventually(1, "refused meanwhile", match("kernel", "198.51.100.91"))
	w.carried("room", "198.51.100.200:9000")

	w.rooms["room"].kill()
	for _, to := range []string{testnet.Allowed + ":443", "198.51.100.200:9000", "127.0.0.1:536"} {
		for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
			c, err := w.dial("room", "tcp", to)
			if errors.Is(err, unix.ECONNREFUSED) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%s is still served: %v %v", to, c, err)
				break
			}
		}
	}
}

// TestAnyIPLive: a port that opens and closes while a room runs; and one that a
// worker's program has: that is told by whom, nothing leaves by it, and the
// others go on (B22, B27).
func TestAnyIPLive(t *testing.T) {
	w := anyIPWorld(t, restricted(t, "allowed.example.org", "198.51.100.192/26:9000"))
	change := func(deny bool, port int) error {
		ports := []firewall.PortRange{{First: uint16(port), Last: uint16(port)}}
		r := rule(t, "198.51.100.192/26:"+strconv.Itoa(port), 1)
		r.Ports, r.Line = ports, ""
		var a control.Applied
		return w.host(control.Request{Op: control.OpChange, Changes: []firewall.Live{{Room: "room", Deny: deny, Rule: r}}}, &a)
	}
	l := w.listenOutside("198.51.100.210:9001")
	go testnet.Serve(l, func(c net.Conn) { io.WriteString(c, "outside\n") })
	read := func(addr string) string {
		c, err := w.dial("room", "tcp", addr)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		return string(b)
	}
	const to = "198.51.100.210:9001"
	if s := read(to); !strings.Contains(s, "refused") {
		t.Errorf("before: %q", s)
	}
	var own net.Listener
	if err := w.rooms["room"].ns.Do(func() (err error) { own, err = net.Listen("tcp", ":9001"); return err }); err != nil {
		t.Fatal(err)
	}
	go testnet.Serve(own, func(c net.Conn) { io.WriteString(c, "the worker's own\n") })
	if err := change(false, 9001); err == nil || !strings.Contains(err.Error(), "port 9001 is taken by a program of a worker (uid 0, at ") {
		t.Errorf("allow of a port that is taken: %v", err)
	}
	if s := read(to); s != "the worker's own\n" {
		t.Errorf("while it is taken: %q", s)
	}
	w.carried("room", "198.51.100.200:9000")
	// A guard that comes meanwhile serves the rest, and notes it.
	if err := change(true, 9000); err != nil && !strings.Contains(err.Error(), "9001") {
		t.Error(err)
	}
	own.Close()
	if err := change(false, 9001); err != nil {
		t.Errorf("again: %v", err)
	}
	if s := read(to); s != "outside\n" {
		t.Errorf("allowed: %q", s)
	}
	if err := w.rooms["room"].ns.Do(func() error { l, err := net.Listen("tcp", ":9001"); _ = l; return err }); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("the guard's port can be taken: %v", err)
	}
	if err := change(true, 9001); err != nil {
		t.Error(err)
	}
	if s := read(to); s == "outside\n" {
		t.Errorf("denied: %q", s)
	}
}

// TestAnyIPTakenAtStart: a guard that comes to a room in which a program has a
// port of the policy serves the others and says so.
func TestAnyIPTakenAtStart(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org", "198.51.100.192/26:9000-9001"))
	w.anyIP = true
	w.startRooms()
	if err := w.rooms["room"].ns.Do(func() error {
		l, err := net.Listen("tcp", "127.0.0.1:9001")
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.startGuard()
	w.carried("room", "198.51.100.200:9000")
	w.guard.eventually(1, "note", func(e event) bool {
		return e.Verdict == "note" && e.Reason == "port-taken" && strings.Contains(e.Rule, "port 9001 is taken by a program of a worker")
	})
}

//go:build linux

package room

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// A destination of each family that nobody has here.
var outside = map[string]string{"4": "198.51.100.7", "6": "2001:db8::7"}

// accept takes one connection of a handed-over listener and returns the
// address that its peer dialled, the work of the guard.
func accept(t *testing.T, f *os.File) (net.Conn, netip.AddrPort) {
	t.Helper()
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Second))
	c, err := l.Accept()
	if err != nil {
		t.Fatalf("%s: %v", f.Name(), err)
	}
	return c, originalDestination(t, c.(*net.TCPConn))
}

// originalDestination asks conntrack (SO_ORIGINAL_DST of
// linux/netfilter_ipv4.h, IP6T_SO_ORIGINAL_DST of ip6_tables.h: both 80).
func originalDestination(t *testing.T, c *net.TCPConn) netip.AddrPort {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	var ap netip.AddrPort
	raw.Control(func(fd uintptr) {
		if remote.Is4() {
			var m *unix.IPv6Mreq // 16 bytes and more: holds a sockaddr_in
			if m, err = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, 80); err == nil {
				ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Multiaddr[4:8])), binary.BigEndian.Uint16(m.Multiaddr[2:4]))
			}
			return
		}
		var m *unix.IPv6MTUInfo // begins with a sockaddr_in6
		if m, err = unix.GetsockoptIPv6MTUInfo(int(fd), unix.IPPROTO_IPV6, 80); err == nil {
			var port [2]byte
			binary.NativeEndian.PutUint16(port[:], m.Addr.Port)
			ap = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), binary.BigEndian.Uint16(port[:]))
		}
	})
	if err != nil {
		t.Fatalf("SO_ORIGINAL_DST: %v", err)
	}
	return ap
}

// TestRedirected: a connection to any address arrives at the socket of its
// port, with the address that was dialled.
func TestRedirected(t *testing.T) {
	r := startRoom(t)
	// Until the guard has told the policy's ports, they are refused.
	r.expect(1000, "dial tcp4 "+outside["4"]+" 22", "ECONNREFUSED")
	r.redirect("22,8000-8010")
	s := r.sockets()
	for family, addr := range outside {
		for port, f := range map[int]*os.File{80: s.HTTP, 443: s.TLS, 22: s.TCP, 8000: s.TCP, 8010: s.TCP, 53: s.DNSTCP} {
			got := make(chan struct{})
			go func() {
				defer close(got)
				c, dialled := accept(t, f)
				defer c.Close()
				if want := netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(port)); dialled != want {
					t.Errorf("dialled %v, the guard sees %v", want, dialled)
				}
			}()
			r.expect(1000, "dial tcp"+family+" "+addr+" "+strconv.Itoa(port), "ok")
			<-got
		}
	}
}

// TestDNSIsAnswered: a question to any server arrives at the room's socket,
// and its answer seems to come from that server.
func TestDNSIsAnswered(t *testing.T) {
	r := startRoom(t)
	s := r.sockets()
	p, err := net.FilePacketConn(s.DNSUDP)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			p.WriteTo(buf[:n], from)
		}
	}()
	// The sockets of these attacks are connected, so only an answer from the
	// address that was asked is received.
	for _, server := range []string{outside["4"], outside["6"], "127.0.0.1", "::1", "127.0.0.11"} {
		family := "4"
		if strings.Contains(server, ":") {
			family = "6"
		}
		r.expect(1000, "dial udp"+family+" "+server+" 53", "ok")
	}
}

// TestDenied: everything else fails at once, with the right error, is counted
// exactly and told by NFLOG (B28). The controls are the tests above and the
// worker's own listeners below.
func TestDenied(t *testing.T) {
	r := startRoom(t)
	r.redirect("22")
	c := r.client()
	s, err := c.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := packetsOf(s)
	for _, uid := range []int{1000, 0} {
		for family, addr := range outside {
			r.expect(uid, "dial tcp"+family+" "+addr+" 23", "ECONNREFUSED")
			r.expect(uid, "dial tcp"+family+" "+addr+" 531", "ECONNREFUSED")
			r.expect(uid, "dial udp"+family+" "+addr+" 123", "EPERM")
			r.expect(uid, "dial udp"+family+" "+addr+" 443", "EPERM") // QUIC
		}
	}
	count, err := c.Counters()
	if err != nil || count != (handover.Counters{Denied4: 8, Denied6: 8}) {
		t.Errorf("counters %+v, %v; want 8 and 8", count, err)
	}
	var uids [2]int
	for range 16 {
		select {
		case e := <-log:
			if e.HasUID && e.UID == 1000 {
				uids[0]++
			} else if e.HasUID && e.UID == 0 {
				uids[1]++
			}
			if dst := e.Dst.String(); dst != outside["4"] && dst != outside["6"] {
				t.Errorf("NFLOG tells of %s", dst)
			}
		case <-time.After(2 * time.Second):
			t.Fatalf("an event is missing (%v so far)", uids)
		}
	}
	if uids != [2]int{8, 8} {
		t.Errorf("events by uid: %v", uids)
	}
}

// TestICMP: a ping leads nowhere; the control is one of loopback.
func TestICMP(t *testing.T) {
	r := startRoom(t)
	r.inside(func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2000"), 0); err != nil {
			t.Error(err)
		}
	})
	for family, addr := range outside {
		// IPv4 fails in sendto, IPv6 by the ICMPv6 message that comes back.
		r.expect(1000, "ping "+addr, map[string]string{"4": "EPERM", "6": "EACCES"}[family])
		r.expect(1000, "ping "+map[string]string{"4": "127.0.0.1", "6": "::1"}[family], "ok")
	}
}

// TestGuardsPorts: the transparent ports take redirected connections only, and
// no worker can bind them (B22); the explicit proxy is open, and a worker's
// own servers are.
func TestGuardsPorts(t *testing.T) {
	r := startRoom(t)
	loopback := map[string]string{"4": "127.0.0.1", "6": "::1"}
	for family, addr := range loopback {
		for port := firewall.PortDNS; port <= firewall.PortTCP; port++ {
			r.expect(1000, "dial tcp"+family+" "+addr+" "+strconv.Itoa(port), "ECONNREFUSED")
		}
		r.expect(1000, "dial tcp"+family+" "+addr+" "+strconv.Itoa(firewall.PortProxy), "ok")
		// The refusal is an ICMP message: EHOSTUNREACH, or EACCES for IPv6.
		r.expect(1000, "dial udp"+family+" "+addr+" 531", map[string]string{"4": "EHOSTUNREACH", "6": "EACCES"}[family])
		for _, uid := range []int{1000, 0} {
			for port := firewall.PortDNS; port <= firewall.PortProxy; port++ {
				r.expect(uid, "bind tcp "+addr+" "+strconv.Itoa(port), "EACCES")
			}
			r.expect(uid, "bind udp "+addr+" 531", "EACCES")
			r.expect(uid, "bind tcp "+addr+" 8080", "ok")
		}
		// A server of the worker, on a port that is not redirected.
		var l net.Listener
		var err error
		r.inside(func() { l, err = net.Listen("tcp", net.JoinHostPort(addr, "0")) })
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		r.expect(1000, "dial tcp"+family+" "+addr+" "+strconv.Itoa(port), "ok")
		l.Close()
		r.expect(1000, "dial tcp"+family+" "+addr+" "+strconv.Itoa(port), "ECONNREFUSED")
	}
}

// TestWorkerCantChangeRoom: B22. The control is the same by root with
// capabilities, which works.
func TestWorkerCantChangeRoom(t *testing.T) {
	r := startRoom(t)
	for _, uid := range []int{1000, 0} {
		for _, what := range []string{"route", "rules", "loup", "raw", "nflog"} {
			r.expect(uid, what, "EPERM")
		}
	}
	before := r.command("", "iptables-save")
	if saved(before) != string(firewall.NewRuleset(firewall.RulesetOptions{}).Text(firewall.V4)) {
		t.Error("the rules have changed")
	}
	var err error
	r.inside(func() { err = errors.Join(moveRoute("127.0.0.1"), flushRules()) })
	if err != nil {
		t.Errorf("the control failed: %v", err)
	}
}

// TestFlushedRoomIsClosed: with every rule gone nothing leaves, because there
// is nothing but loopback (B20). Packets would have to leave by an interface.
func TestFlushedRoomIsClosed(t *testing.T) {
	r := startRoom(t)
	var err error
	r.inside(func() { err = flushRules() })
	if err != nil {
		t.Fatal(err)
	}
	if out := r.command("", "iptables-save") + r.command("", "ip6tables-save"); strings.Contains(out, "WS_") {
		t.Fatalf("the rules are still there:\n%s", out)
	}
	links := r.command("", "ip", "-o", "link")
	if n := strings.Count(links, "UP"); n < 1 || strings.Count(strings.ReplaceAll(links, "LOWER_UP", ""), "UP") != 1 {
		t.Errorf("there is more than lo:\n%s", links)
	}
	for family, addr := range outside {
		for _, uid := range []int{1000, 0} {
			for _, role := range []string{"dial tcp" + family + " " + addr + " 443", "dial udp" + family + " " + addr + " 53"} {
				if seen, _ := r.worker(uid, role); seen == "ok" {
					t.Errorf("uid %d: %s arrived somewhere", uid, role)
				}
			}
		}
	}
	r.expect(1000, "dial tcp4 127.0.0.1 536", "ok") // the namespace itself works
}

// TestGuardComesAgain: connections that were made while no guard was there
// wait and are served by the next one (B29).
func TestGuardComesAgain(t *testing.T) {
	r := startRoom(t)
	first := r.client()
	s1, err := first.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	again, err := first.Sockets() // twice on one connection
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	s1.Close()
	first.Close() // killed
	r.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ok")
	s2 := r.sockets()
	c, dialled := accept(t, s2.TLS)
	defer c.Close()
	if dialled.String() != outside["4"]+":443" {
		t.Errorf("dialled %v", dialled)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection that waited: %v", err)
	}
}

// TestRoomKilled: the guard sees it at once; with its copies closed the next
// connect fails at once.
func TestRoomKilled(t *testing.T) {
	r := startRoom(t)
	hold := holdNamespace(t, r)
	c := r.client()
	s, err := c.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	r.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ok")
	r.cmd.Process.Kill()
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the guard didn't see the end of the room")
	}
	s.Close()
	r.cmd.Wait()
	hold.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ECONNREFUSED")
	hold.expect(1000, "dial tcp6 "+outside["6"]+" 443", "ECONNREFUSED")
}

func connectResult(fd int) error {
	no, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && no != 0 {
		err = unix.Errno(no)
	}
	return err
}

// TestDialIntoRoom: the guard reaches a worker's port by a socket that the
// room made, the way of published ports.
func TestDialIntoRoom(t *testing.T) {
	r := startRoom(t)
	c := r.client()
	for _, addr := range []string{"127.0.0.1", "::1"} {
		var l net.Listener
		var err error
		r.inside(func() { l, err = net.Listen("tcp", net.JoinHostPort(addr, "8080")) })
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.DialSocket(8080)
		if err != nil {
			t.Fatal(err)
		}
		ip := netip.MustParseAddr(addr)
		err = unix.Connect(int(f.Fd()), &unix.SockaddrInet6{Port: 8080, Addr: ip.As16()}) // v4 as mapped
		if err == unix.EINPROGRESS {
			if _, err = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}, 5000); err == nil {
				err = connectResult(int(f.Fd()))
			}
		}
		if err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		f.Close()
		l.Close()
	}
	if _, err := c.DialSocket(firewall.PortTLS); err == nil {
		t.Error("the guard's own port was given")
	}
}

//go:build linux

package room

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/nflog"
	"github.com/llmdo/workshop/internal/room/handover"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// capabilities that a room has: no CAP_NET_RAW.
const roomCapabilities = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_BIND_SERVICE

// withPackets becomes a room on a kernel without netfilter as its maker does: it
// makes the packet sockets, and drops all capabilities but a room's.
func withPackets(args []string) int {
	runtime.LockOSThread()
	err := testutil.WithoutNetfilter()
	if os.Getenv("ROOM_TEST_IPV6") == "none" && err == nil {
		err = testutil.WithoutIPv6()
	}
	var list string
	if err == nil {
		list, err = packetSockets()
	}
	if err == nil {
		err = limitCapabilities(roomCapabilities)
	}
	if err == nil {
		os.Setenv(roleVariable, "room")
		err = syscall.Exec("/proc/self/exe", append(args, "--fallback", "anyip", "--packet-fds", list), os.Environ())
	}
	fmt.Println(err)
	return 1
}

// packetSockets makes them, for the program that is executed in this one's place,
// and says their numbers as --packet-fds takes them.
func packetSockets() (string, error) {
	fds, err := kernelsupport.PacketSockets()
	list := make([]string, len(fds))
	for i, fd := range fds {
		list[i] = strconv.Itoa(fd)
		unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	}
	return strings.Join(list, ","), err
}

// limitCapabilities leaves the thread, and what it executes, these.
func limitCapabilities(keep uint64) error {
	for c := range unix.CAP_LAST_CAP + 1 {
		if keep&(1<<c) == 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
				return err
			}
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: uint32(keep), Permitted: uint32(keep), Inheritable: uint32(keep)}}
	return unix.Capset(&header, &data[0])
}

// anyIPRoom starts a room without netfilter.
func anyIPRoom(t testing.TB, prepare func(*exec.Cmd), args ...string) *testRoom {
	t.Helper()
	r := launchRoom(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, roleVariable+"=room without netfilter, with packet sockets")
		if prepare != nil {
			prepare(cmd)
		}
	}, args...)
	if line := <-r.said; line != "READY" {
		t.Fatalf("the room said %q", line)
	}
	return r
}

// refused reads what the packet sockets of a room show, as the guard does.
func refused(s handover.Sockets) <-chan nflog.Packet {
	out := make(chan nflog.Packet, 1000)
	for _, f := range []*os.File{s.Refused4, s.Refused6} {
		if f == nil {
			continue
		}
		if log, err := nflog.NewRefused(f, func(p nflog.Packet) { out <- p }, func(uint64) {}); err == nil {
			go log.Read()
		}
	}
	return out
}

// open tells the ports and returns the listeners.
func open(t *testing.T, c *handover.Client, list string) map[int]*os.File {
	t.Helper()
	ports, err := firewall.ParsePorts(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Redirect(ports)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]*os.File{}
	for _, l := range got {
		out[int(l.Port)] = l.File
		t.Cleanup(func() { l.File.Close() })
	}
	return out
}

// TestAnyIPLeadsToTheGuard: a connection to any address arrives at the listener
// of its port, whose local address is what was dialled.
func TestAnyIPLeadsToTheGuard(t *testing.T) {
	r := anyIPRoom(t, nil)
	c := r.client()
	s, err := c.Sockets()
	if err != nil || s.Kind != handover.AnyIP {
		t.Fatalf("%+v %v", s, err)
	}
	defer s.Close()
	r.expect(1000, "dial tcp4 "+outside["4"]+" 22", "ECONNREFUSED")
	listeners := open(t, c, "22,8000-8002")
	if len(listeners) != 4 {
		t.Fatalf("%v", listeners)
	}
	for port, f := range map[int]*os.File{80: s.HTTP, 443: s.TLS, 53: s.DNSTCP} {
		listeners[port] = f
	}
	addrs := []string{outside["4"], outside["6"], "169.254.169.254", "10.1.2.3", "240.0.0.1", "fd00:ec2::254", "64:ff9b::1", "127.0.0.1", "::1"}
	for _, addr := range addrs {
		for port, f := range listeners {
			got := make(chan struct{})
			go func() {
				defer close(got)
				l, err := net.FileListener(f)
				if err != nil {
					t.Error(err)
					return
				}
				defer l.Close()
				l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Second))
				c, err := l.Accept()
				if err != nil {
					t.Errorf("%s port %d: %v", addr, port, err)
					return
				}
				defer c.Close()
				local := c.LocalAddr().(*net.TCPAddr).AddrPort()
				if from := c.RemoteAddr().(*net.TCPAddr).IP; !from.IsLoopback() {
					t.Errorf("dialled %s port %d from %s", addr, port, from) // it could connect to itself
				}
				if local.Addr().Unmap() != netip.MustParseAddr(addr) || int(local.Port()) != port {
					t.Errorf("dialled %s port %d, the guard sees %s", addr, port, local)
				}
			}()
			r.expect(1000, "dial tcp "+addr+" "+strconv.Itoa(port), "ok")
			<-got
		}
	}
	for _, addr := range addrs { // the guard looks where they go
		r.expect(1000, "dial tcp "+addr+" 536", "ok")
	}
	for _, addr := range []string{"224.0.0.251", "239.1.1.1", "ff02::fb%lo", "ff05::1", "255.255.255.255"} {
		if seen, took := r.worker(1000, "dial udp "+addr+" 5353"); !slices.Contains([]string{"EACCES", "ENETUNREACH", "EADDRNOTAVAIL"}, seen) || took > patience/2 {
			t.Errorf("multicast to %s: %s after %v", addr, seen, took)
		}
	}
	// What goes is closed by the room; the guard has a copy, which it closes.
	for _, f := range listeners {
		f.Close()
	}
	open(t, c, "22")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 8000", "ECONNREFUSED")
	r.expect(1000, "dial tcp6 "+outside["6"]+" 22", "ok")
}

// TestAnyIPDenied: everything else fails at once, is counted exactly and shown
// (B28). The room has no CAP_NET_RAW.
func TestAnyIPDenied(t *testing.T) {
	r := anyIPRoom(t, nil)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if want := fmt.Sprintf("CapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\n", roomCapabilities, roomCapabilities, roomCapabilities); err != nil || !strings.Contains(string(status), want) {
		t.Errorf("capabilities: %v\n%s", err, status)
	}
	c := r.client()
	s, err := c.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := refused(s)
	open(t, c, "22")
	for _, uid := range []int{1000, 0} {
		for family, addr := range outside {
			r.expect(uid, "dial tcp"+family+" "+addr+" 23", "ECONNREFUSED")
			r.expect(uid, "dial tcp"+family+" "+addr+" 531", "ECONNREFUSED")
			r.expect(uid, "dial udp"+family+" "+addr+" 123", "ECONNREFUSED")
			r.expect(uid, "dial udp"+family+" "+addr+" 443", "ECONNREFUSED") // QUIC
			// None of these is a denial.
			r.expect(uid, "dial tcp"+family+" "+addr+" 22", "ok")
			r.expect(uid, "dial tcp"+family+" "+addr+" 443", "ok")
			loopback := map[string]string{"4": "127.0.0.1", "6": "::1"}[family]
			r.expect(uid, "dial tcp"+family+" "+loopback+" 23", "ECONNREFUSED")
			r.expect(uid, "dial udp"+family+" "+loopback+" 123", "ECONNREFUSED")
		}
	}
	seen := map[string]int{}
	for range 16 {
		select {
		case p := <-log:
			seen[fmt.Sprintf("%s %s %d", p.Protocol, p.Dst, p.Port)]++
		case <-time.After(2 * time.Second):
			t.Fatalf("an event is missing: %v", seen)
		}
	}
	for _, addr := range outside {
		for _, what := range []string{"tcp " + addr + " 23", "tcp " + addr + " 531", "udp " + addr + " 123", "udp " + addr + " 443"} {
			if seen[what] != 2 {
				t.Errorf("%s: %d events", what, seen[what])
			}
		}
	}
	select {
	case p := <-log:
		t.Errorf("one too many: %+v", p)
	case <-time.After(50 * time.Millisecond):
	}
	for range 2 { // asking doesn't change it
		if count, err := c.Counters(); err != nil || count != (handover.Counters{Denied4: 8, Denied6: 8, Kind: handover.AnyIP}) {
			t.Errorf("counters %+v, %v; want 8 and 8", count, err)
		}
	}
}

// TestAnyIPCountsFloods: what nobody reads is counted nevertheless, exactly, and
// the reader learns how much it missed.
func TestAnyIPCountsFloods(t *testing.T) {
	r := anyIPRoom(t, nil)
	c := r.client()
	s, err := c.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 20000
	r.inside(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		for i := 0; i < n; {
			if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 123, Addr: [4]byte{198, 51, 100, 7}}); err == nil {
				i++
			}
		}
	})
	if count, err := c.Counters(); err != nil || count.Denied4 != n {
		t.Errorf("counters %+v, %v; want %d", count, err, n)
	}
	var got, lost uint64
	log, err := nflog.NewRefused(s.Refused4, func(nflog.Packet) { got++ }, func(k uint64) { lost += k })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); log.Read() }()
	time.Sleep(200 * time.Millisecond)
	s.Refused4.Close()
	<-done
	if got == 0 || lost == 0 || got+lost != n {
		t.Errorf("%d were shown and %d lost, of %d", got, lost, n)
	}
}

// TestAnyIPDNS: the answer to a question comes from the server that was asked,
// of either family.
func TestAnyIPDNS(t *testing.T) {
	r := anyIPRoom(t, nil)
	s := r.sockets()
	p, err := net.FilePacketConn(s.DNSUDP)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	on, err := unix.GetsockoptInt(int(s.DNSUDP.Fd()), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO)
	if err != nil || on != 1 {
		t.Errorf("IPV6_RECVPKTINFO %d, %v", on, err)
	}
	go func() {
		u := p.(*net.UDPConn)
		buf, oob := make([]byte, 512), make([]byte, 64)
		for {
			n, oobn, _, from, err := u.ReadMsgUDPAddrPort(buf, oob)
			if err != nil {
				return
			}
			m, err := unix.ParseSocketControlMessage(oob[:oobn])
			if err != nil || len(m) != 1 {
				t.Errorf("%d control messages, %v", len(m), err)
				return
			}
			info := unix.Inet6Pktinfo{Addr: [16]byte(m[0].Data[:16])}
			u.WriteMsgUDPAddrPort(buf[:n], unix.PktInfo6(&info), from)
		}
	}()
	for _, server := range []string{outside["4"], outside["6"], "127.0.0.1", "::1", "127.0.0.11", "10.0.0.1"} {
		r.expect(1000, "dial udp "+server+" 53", "ok") // by a connected socket
	}
}

// TestAnyIPCantBeChanged: B22, B20.
func TestAnyIPCantBeChanged(t *testing.T) {
	r := anyIPRoom(t, nil)
	for _, uid := range []int{1000, 0} {
		for _, what := range []string{"route", "loup", "raw"} {
			r.expect(uid, what, "EPERM")
		}
	}
	if links := r.command("", "ip", "-o", "link"); strings.Count(strings.ReplaceAll(links, "LOWER_UP", ""), "UP") != 1 {
		t.Errorf("there is more than lo:\n%s", links)
	}
}

// TestAnyIPWithoutIPv6: the other family is served alone.
func TestAnyIPWithoutIPv6(t *testing.T) {
	r := anyIPRoom(t, script(t, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"))
	r.expect(1000, "dial tcp6 "+outside["6"]+" 443", "EADDRNOTAVAIL")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ok")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 23", "ECONNREFUSED")
}

// TestAnyIPOnKernelWithoutIPv6: sockets of IPv4 do all, answers to questions
// included.
func TestAnyIPOnKernelWithoutIPv6(t *testing.T) {
	r := anyIPRoom(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "ROOM_TEST_IPV6=none") })
	c := r.client()
	s, err := c.Sockets()
	if err != nil || s.Refused6 != nil {
		t.Fatalf("%+v %v", s, err)
	}
	defer s.Close()
	p, err := net.FilePacketConn(s.DNSUDP)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	go func() {
		buf, oob := make([]byte, 512), make([]byte, 64)
		for {
			n, oobn, _, from, err := p.(*net.UDPConn).ReadMsgUDPAddrPort(buf, oob)
			if err != nil {
				return
			}
			m, err := unix.ParseSocketControlMessage(oob[:oobn])
			if err != nil || len(m) != 1 || m[0].Header.Type != unix.IP_PKTINFO {
				t.Errorf("control messages %+v, %v", m, err)
				return
			}
			p.(*net.UDPConn).WriteMsgUDPAddrPort(buf[:n], unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(m[0].Data[8:12])}), from)
		}
	}()
	for _, server := range []string{"127.0.0.1", outside["4"]} {
		r.expect(1000, "dial udp4 "+server+" 53", "ok")
	}
	open(t, c, "22")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 22", "ok")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 23", "ECONNREFUSED")
	if n, err := c.Counters(); err != nil || n.Denied4 != 1 || n.Denied6 != 0 {
		t.Errorf("%+v %v", n, err)
	}
}

// TestAnyIPRefused: without what it needs, there is no such room; and where
// netfilter works, there is none either.
func TestAnyIPRefused(t *testing.T) {
	role := func(name string) func(*exec.Cmd) {
		return func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, roleVariable+"="+name) }
	}
	for name, c := range map[string]struct {
		role string
		args []string
		want string
	}{
		"not allowed":       {"room without netfilter", nil, "use a kernel that has it"},
		"no packet sockets": {"room without netfilter", []string{"--fallback", "anyip"}, "packet sockets (B28)"},
		"open":              {"room without netfilter, with packet sockets", []string{"--open"}, "`open` always needs it"},
		"no packet socket":  {"room without netfilter", []string{"--fallback", "anyip", "--packet-fds", "3,4,5,6"}, "packet socket"},
	} {
		if line := failing(t, role(c.role), c.args...); !strings.Contains(line, c.want) {
			t.Errorf("%s: said %q, want %q in it", name, line, c.want)
		}
	}
	// Packet sockets of another namespace.
	fds, err := kernelsupport.PacketSockets()
	if err != nil {
		t.Fatal(err)
	}
	line := failing(t, func(cmd *exec.Cmd) {
		role("room without netfilter")(cmd)
		for _, fd := range fds {
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "packet"))
		}
	}, "--fallback", "anyip", "--packet-fds", "3,4,5,6")
	if !strings.Contains(line, "another network namespace than the room") {
		t.Errorf("sockets of another namespace: said %q", line)
	}
	switch lacks, err := kernelsupport.Missing(kernelsupport.Extensions()); {
	case len(lacks) > 0:
		return // a kernel as this test makes one (`make test-vm`)
	case err != nil:
		t.Fatal(err)
	}
	r := startRoom(t, "--fallback", "anyip")
	if s := r.sockets(); s.Kind != handover.NFTables {
		t.Errorf("with netfilter: %q", s.Kind)
	}
}

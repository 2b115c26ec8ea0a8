package guard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// file returns another descriptor of a socket.
func file(t testing.TB, c interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// supervised starts the rooms, and a guard as a supervisor does: with listeners
// for the published ports, made on the guard's own network at addresses of the
// test's choice, and a socket for control connections, of which it returns the
// other end. The guard isn't waited for.
func (w *world) supervised(args ...string) *net.UnixConn {
	w.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		w.Fatal(err)
	}
	ours, its := os.NewFile(uintptr(fds[0]), ""), os.NewFile(uintptr(fds[1]), "")
	defer its.Close()
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	w.extra = append([]*os.File{its}, w.extra...)
	w.guard = w.start(w.outside, "guard", credential(guardUID).Credential, append([]string{
		"--policy", filepath.Join(w.dir, "policy"), "--sockets", filepath.Join(w.dir, "sockets"), "--control-fd", "3",
	}, args...)...)
	return c.(*net.UnixConn)
}

// listenNear listens on an address of the guard's own network.
func (w *world) listenNear(addr string) *net.TCPListener {
	w.Helper()
	var l net.Listener
	if err := w.outside.Do(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// TestInheritedSockets: control connections and published ports come by
// descriptors, and the guard itself listens nowhere.
func TestInheritedSockets(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}}
	w := buildWorld(t, p)
	w.startRooms()
	var worker net.Listener
	if err := w.rooms["room"].ns.Do(func() (err error) { worker, err = net.Listen("tcp", "127.0.0.1:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	go testnet.Serve(worker, func(c net.Conn) { fmt.Fprintln(c, "from the worker") })

	published := w.listenNear("127.0.0.1:8080")
	w.extra = []*os.File{file(t, published)}
	sock := w.supervised("--inbound-fd", "20000=4", "--resolv-conf", "/nonexistent")
	published.Close()
	w.guard.waitReady()

	near := func(addr string) (string, error) {
		var c net.Conn
		if err := w.outside.Do(func() (err error) { c, err = net.Dial("tcp", addr); return err }); err != nil {
			return "", err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(3 * time.Second))
		return bufio.NewReader(c).ReadString('\n')
	}
	if s, err := near("127.0.0.1:8080"); s != "from the worker\n" {
		t.Errorf("published: %q %v", s, err)
	}
	if s, err := near("127.0.0.1:20000"); err == nil {
		t.Errorf("the port of the policy is open: %q", s)
	}
	sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", w.guard.cmd.Process.Pid))
	if n := strings.Count(string(sockets), " 0A "); err != nil || n != 1 {
		t.Errorf("%d listeners on the guard's network, %v:\n%s", n, err, sockets)
	}
	if _, err := os.Stat(w.control()); err == nil {
		t.Error("there is a control socket")
	}

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine, its := os.NewFile(uintptr(pair[0]), ""), os.NewFile(uintptr(pair[1]), "")
	defer mine.Close()
	if err := control.Pass(sock, its); err != nil {
		t.Fatal(err)
	}
	its.Close()
	c, err := net.FileConn(mine)
	if err != nil {
		t.Fatal(err)
	}
	client := control.NewClient(c)
	defer client.Close()
	var state control.State
	for _, when := range []string{"now", "when the socket has ended"} {
		if err := client.Do(control.Request{Op: control.OpState}, &state); err != nil || len(state.Rooms) != 1 || !state.Rooms[0].Served {
			t.Errorf("%s: %+v %v", when, state, err)
		}
		sock.Close()
		time.Sleep(20 * time.Millisecond)
	}
	if r := w.ask("room", "udp", "10.0.0.1:53", firewall.ReadyName, dns.TypeA); len(r.Answer) != 1 {
		t.Error("the room isn't served any more")
	}
}

// TestInheritedIncomplete: with a supervisor, a published port without a socket
// stops the guard: it would open the machine's own port to everybody.
func TestInheritedIncomplete(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}, {Room: "room", Listen: 20001, Target: 8081, Worker: "alice"}}
	w := buildWorld(t, p)
	w.startRooms()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none":          {nil, "published port 808"},
		"one is absent": {[]string{"--inbound-fd", "20000=4"}, "published port 8081: --inbound-fd 20001=N is missing"},
		"an unknown one": {
			[]string{"--inbound-fd", "20000=4", "--inbound-fd", "20001=5", "--inbound-fd", "20002=6"}, "the policy publishes no such port",
		},
		"does not listen": {[]string{"--inbound-fd", "20000=4", "--inbound-fd", "20001=6"}, "descriptor 6 does not listen"},
	} {
		a, b := w.listenNear("127.0.0.1:0"), w.listenNear("127.0.0.1:0")
		w.extra = []*os.File{file(t, a), file(t, b), os.Stderr}
		sock := w.supervised(append(c.args, "--resolv-conf", "/nonexistent")...)
		select {
		case line := <-w.guard.ready:
			if !strings.HasPrefix(line, "FAILED ") || !strings.Contains(line, c.want) {
				t.Errorf("%s: it said %q", name, line)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: it said nothing", name)
		}
		w.guard.kill()
		sock.Close()
		a.Close()
		b.Close()
	}
}

// TestDescriptorFlags: what is no descriptor is refused.
func TestDescriptorFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--control-fd", "2"}, {"--control-fd", "x"}, {"--inbound-fd", "20000"}, {"--inbound-fd", "0=4"}, {"--inbound-fd", "70000=4"},
		{"--inbound-fd", "20000=1"}, {"--inbound-fd", "20000=4", "--inbound-fd", "20000=5"},
		{"--inbound-fd", "20000=4", "--inbound-fd", "20001=4"}, {"--inbound-fd", "20000=4", "--control-fd", "4"},
	} {
		if code := Main(args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%v: %d", args, code)
		}
	}
}

// TestLoopbackResolver: a resolver on the guard's own loopback, as
// systemd-resolved is, is asked; a worker reaches neither it nor anything else
// there (B26).
func TestLoopbackResolver(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org", "stub.example.org:5353,9000", "0.0.0.0/0:9000 private"))
	w.policy.Resolvers = nil
	if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(&w.policy), 0o644); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(w.dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.53\noptions edns0 trust-ad\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stub net.PacketConn
	if err := w.outside.Do(func() (err error) { stub, err = net.ListenPacket("udp", "127.0.0.53:53"); return err }); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 100)
	server := &dns.Server{PacketConn: stub, Handler: dns.HandlerFunc(func(rw dns.ResponseWriter, m *dns.Msg) {
		name := m.Question[0].Name
		asked <- name
		r := new(dns.Msg).SetReply(m)
		to := netip.MustParseAddr(testnet.Allowed)
		if name == "stub.example.org." {
			to = netip.MustParseAddr("127.0.0.53")
		}
		if m.Question[0].Qtype == dns.TypeA {
			r.Answer = append(r.Answer, &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: to.AsSlice()})
		}
		rw.WriteMsg(r)
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	w.startRooms()
	w.supervised("--resolv-conf", conf)
	w.guard.waitReady()
	if got := addrs(w.ask("room", "udp", "10.0.0.1:53", "allowed.example.org", dns.TypeA)); len(got) != 1 || got[0] != testnet.Allowed {
		t.Errorf("%v", got)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Errorf("through the name: %v", err)
	}
	if got := addrs(w.ask("room", "udp", "10.0.0.1:53", "stub.example.org", dns.TypeA)); len(got) != 0 {
		t.Errorf("an answer shows the loopback: %v", got)
	}
	l := w.listenNear("127.0.0.53:9000")
	defer l.Close()
	for _, to := range []string{"127.0.0.53:9000", "stub.example.org:9000", "127.0.0.53:5353"} {
		c := w.mustDial("room", "tcp", "127.0.0.1:536")
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 403 ") {
			t.Errorf("CONNECT %s: %q %v", to, line, err)
		}
	}
	if len(asked) < 2 {
		t.Error("the resolver wasn't asked")
	}
}

package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestGuardCrash is B29: a killed guard is replaced without touching the room;
// what was under way ends at once, what comes meanwhile waits and is served.
func TestGuardCrash(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "198.51.100.192/26:9000"))
	open := w.mustDial("room", "tcp", "198.51.100.200:9000")
	io.WriteString(open, "x")
	if _, err := open.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.guard.kill()
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived the guard")
	}
	waiting := w.mustDial("room", "tcp", "198.51.100.201:9000")
	io.WriteString(waiting, "y")
	w.startGuard()
	if _, err := waiting.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection in the backlog wasn't served: %v", err)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

// TestRoomKilled is B21: when the room's process dies, everything that the
// guard has of the room ends at once, and nothing is served through its copies.
func TestRoomKilled(t *testing.T) {
	p := restricted(t, "allowed.example.org", "198.51.100.192/26:9000")
	other := p.Rooms[0]
	other.Room = "other"
	p.Rooms = append(p.Rooms, other)
	w := newWorld(t, p)
	conns := map[string]net.Conn{}
	for _, room := range []string{"room", "other"} {
		c := w.mustDial(room, "tcp", "198.51.100.200:9000")
		io.WriteString(c, "x")
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		conns[room] = c
	}
	half := w.mustDial("room", "tcp", testnet.Allowed+":443") // no hello yet
	w.rooms["room"].kill()
	start := testutil.Now()
	for what, c := range map[string]net.Conn{"a carried connection": conns["room"], "one before its hello": half} {
		if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, to := range []string{testnet.Allowed + ":443", "198.51.100.200:9000", "127.0.0.1:536"} {
		if c, err := w.dial("room", "tcp", to); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s is still served: %v %v", to, c, err)
		}
	}
	if _, err := w.exchange("room", "udp", "127.0.0.1:531", new(dns.Msg).SetQuestion("allowed.example.org.", dns.TypeA)); err == nil {
		t.Error("DNS is still served")
	}
	if d := testutil.Since(start); d > time.Second {
		t.Errorf("it took %s", d)
	}
	io.WriteString(conns["other"], "y")
	if _, err := conns["other"].Read(make([]byte, 1)); err != nil {
		t.Errorf("the other room: %v", err)
	}
	// A new room under the same name is served again.
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	w.startRoom(p.Rooms[0], ns)
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Errorf("the new room: %v", err)
	}
}

// TestReadyOnce: READY comes when every room is served, and once.
func TestReadyOnce(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	second := p.Rooms[0]
	second.Room = "second"
	p.Rooms = append(p.Rooms, second)
	w := buildWorld(t, p)
	start := func(i int) {
		ns, err := testnet.NewNS()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		w.startRoom(p.Rooms[i], ns)
	}
	start(0)
	w.launchGuard()
	select {
	case line := <-w.guard.ready:
		t.Errorf("%q before the second room was there", line)
	case <-time.After(200 * time.Millisecond):
	}
	start(1)
	w.guard.waitReady()
	w.rooms["second"].kill()
	start(1)
	select {
	case line := <-w.guard.ready:
		t.Errorf("%q a second time", line)
	case <-time.After(700 * time.Millisecond):
	}
	if r := w.ask("second", "udp", "10.0.0.1:53", firewall.ReadyName, dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("the room that came back: %v", r)
	}
}

// TestRefusesToStart: a guard that can't read or understand its policy, or
// can't have a published port, serves nobody and says why in one line.
func TestRefusesToStart(t *testing.T) {
	for name, change := range map[string]func(w *world, file string){
		"no file":      func(w *world, file string) { os.Remove(file) },
		"not readable": func(w *world, file string) { os.Chmod(file, 0o600) },
		"not JSON":     func(w *world, file string) { os.WriteFile(file, []byte("{"), 0o644) },
		"unknown key": func(w *world, file string) {
			os.WriteFile(file, []byte(`{"version":1,"workshop":"x","rooms":[],"x":1}`), 0o644)
		},
		"another version": func(w *world, file string) {
			os.WriteFile(file, []byte(`{"version":7,"workshop":"x","rooms":[]}`), 0o644)
		},
		"unset variable": func(w *world, file string) {
			os.WriteFile(file, []byte(`{"version":1,"workshop":"x","resolvers":["${NOT_SET:?}"],"rooms":[]}`), 0o644)
		},
		"privileged port": func(w *world, file string) {
			os.WriteFile(file, []byte(strings.Replace(string(firewall.EncodePolicy(&w.policy)), `"rooms"`, `"publish":[{"room":"room","listen":81,"target":8080,"worker":"w"}],"rooms"`, 1)), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := buildWorld(t, restricted(t, "allowed.example.org"))
			change(w, filepath.Join(w.dir, "policy", "policy.json"))
			w.launchGuard()
			select {
			case line := <-w.guard.ready:
				if !strings.HasPrefix(line, "FAILED ") || len(line) < 15 {
					t.Errorf("it said %q", line)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("it said nothing")
			}
			<-w.guard.done
			if code := w.guard.cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestPublished: a port of the guard leads to a worker's listener on 127.0.0.1
// or ::1 in the room, again after the room was replaced.
func TestPublished(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}, {Room: "room", Listen: 20001, Target: 8081, Worker: "alice"}}
	w := newWorld(t, p)
	serve := func(addr string) {
		var l net.Listener
		if err := w.rooms["room"].ns.Do(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprintf(c, "from %s\n", addr)
				c.Close()
			}
		}()
	}
	serve("127.0.0.1:8080")
	if w.in.IPv6 {
		serve("[::1]:8081")
	}
	ask := func(port int) (string, error) {
		var c net.Conn
		if err := w.outside.Do(func() (err error) { c, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)); return err }); err != nil {
			return "", err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(3 * time.Second))
		return bufio.NewReader(c).ReadString('\n')
	}
	if s, err := ask(20000); s != "from 127.0.0.1:8080\n" {
		t.Errorf("published: %q %v", s, err)
	}
	if w.in.IPv6 {
		if s, err := ask(20001); s != "from [::1]:8081\n" {
			t.Errorf("published on ::1: %q %v", s, err)
		}
	} else if s, err := ask(20001); err == nil {
		t.Errorf("nobody listens: %q", s)
	}
	w.rooms["room"].kill()
	if s, err := ask(20000); err == nil {
		t.Errorf("the room is gone: %q", s)
	}
}

// TestEventsAreExact is B28: every denial is counted, equal ones are joined.
func TestEventsAreExact(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "ssh.example.org:22"))
	const n = 300
	for i := range n {
		if i%3 == 0 {
			w.ask("room", "udp", "10.0.0.1:53", "denied.example.org", dns.TypeA)
		}
		w.refused("room", "198.51.100.90:22") // by the guard
		if _, err := w.dial("room", "tcp", "198.51.100.91:23"); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err) // by the room
		}
		c := w.mustDial("room", "udp", "198.51.100.92:5000")
		c.Write([]byte("x"))
		c.Close()
	}
	match := func(kind, addr, name string) func(event) bool {
		return func(e event) bool {
			return e.Verdict == "deny" && e.Kind == kind && e.Address == addr && e.Name == name
		}
	}
	w.guard.eventually(n/3, "dns", match("dns", "", "denied.example.org"))
	w.guard.eventually(n, "tcp", match("tcp", "198.51.100.90", ""))
	w.guard.eventually(n, "kernel tcp", match("kernel", "198.51.100.91", ""))
	w.guard.eventually(n, "kernel udp", match("kernel", "198.51.100.92", ""))
	w.guard.mu.Lock()
	lines := len(w.guard.lines)
	w.guard.mu.Unlock()
	if lines > 60 {
		t.Errorf("%d lines: equal events weren't joined", lines)
	}
	if p := w.in.Packets("udp", "198.51.100.92", 0); p != 0 {
		t.Errorf("%d UDP packets left the room", p)
	}
}

// TestUpstreamProxy: with network.proxy, egress goes by CONNECT to the address
// that the guard resolved and checked.
func TestUpstreamProxy(t *testing.T) {
	p := restricted(t, "allowed.example.org", "inside.example.org", "198.51.100.0/24:3128")
	p.Proxy = "http://user:secret@proxy.example.org:3128"
	w := buildWorld(t, p)
	w.in.Answer("proxy.example.org", testnet.ServFail)
	w.in.Answer("inside.example.org", testnet.A("10.1.2.3"))
	targets := make(chan string, 10)
	var err error
	l := w.listenOutside("198.51.100.80:3128")
	go testnet.Serve(l, func(c net.Conn) {
		br := bufio.NewReader(c)
		head := ""
		for !strings.HasSuffix(head, "\r\n\r\n") {
			s, err := br.ReadString('\n')
			if err != nil {
				return
			}
			head += s
		}
		targets <- head
		to := strings.Fields(head)[1]
		var up net.Conn
		if err := w.in.NS().Do(func() (err error) { up, err = net.Dial("tcp", to); return err }); err != nil {
			io.WriteString(c, "HTTP/1.1 502 no\r\n\r\n")
			return
		}
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		go func() { io.Copy(up, br); up.(*net.TCPConn).CloseWrite() }()
		io.Copy(c, up)
	})
	w.startRooms()
	w.startGuard() // READY although the proxy doesn't resolve
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil {
		t.Error("something was carried without the proxy")
	}
	w.in.Answer("proxy.example.org", testnet.A("198.51.100.80"))
	var c net.Conn
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if c, err = w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if e, _, _ := get(w, c, "https://allowed.example.org/"); e.SNI != "allowed.example.org" {
		t.Errorf("%+v", e)
	}
	head := <-targets
	if !strings.HasPrefix(head, "CONNECT "+testnet.Allowed) && !strings.HasPrefix(head, "CONNECT ["+testnet.Allowed6) || !strings.Contains(head, "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=") {
		t.Errorf("the proxy was asked %q", head)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "inside.example.org"); err == nil {
		t.Error("a private answer went to the proxy")
	}
	w.refused("room", "198.51.100.80:3128") // the proxy itself is never dialled for a worker
	select {
	case head := <-targets:
		t.Errorf("the proxy was asked %q", head)
	default:
	}
}

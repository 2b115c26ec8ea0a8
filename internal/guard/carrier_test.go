package guard

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// outletUID is who the outlet is in its container.
const outletUID = 65531

// carry puts the workers of a room into a namespace like a sandbox with a kernel of its
// own: from now on the tests dial there.
func (w *world) carry(room string) {
	w.Helper()
	ns := w.rooms[room].ns
	inside, err := testnet.NewNS()
	if err == nil {
		w.Cleanup(func() { inside.Close() })
		err = inside.Do(testcarrier.EveryAddress)
	}
	dir := filepath.Join(w.dir, "streams-"+room)
	if err == nil {
		err = errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, outletUID, outletUID))
	}
	if err != nil {
		w.Fatal(err)
	}
	socket := filepath.Join(dir, "out.sock")
	w.startOutlet = func() {
		w.outlet = w.start(ns, "outlet", &syscall.Credential{Uid: outletUID, Gid: outletUID}, "--socket", socket)
		w.outlet.waitReady()
	}
	w.startOutlet()
	w.start(inside, "relay", nil, socket, "53", "80", "443", "536").waitReady()
	w.rooms[room].ns = inside
}

// TestCarrier: the same guard, as it is, serves a worker whose connections come from
// another kernel by a carrier: names, pinned addresses, ranges, denials with exact counts
// (B23–B26, B28), live changes (B27), its own replacement and the outlet's (B29).
// `GUARD_TEST_ROOMS=carrier go test ./internal/guard` runs all its tests so.
func TestCarrier(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org", "ssh.example.org:22", "198.51.100.192/26:9000"))
	w.byCarrier = true
	w.startRooms()
	w.startGuard()
	for _, server := range []string{"10.0.0.1:53", "127.0.0.1:53"} {
		for _, network := range []string{"udp", "tcp"} {
			if got := addrs(w.ask("room", network, server, "allowed.example.org", dns.TypeA)); len(got) != 1 || got[0] != testnet.Allowed {
				t.Errorf("%s %s: %v", network, server, got)
			}
		}
	}
	if got := w.ask("room", "udp", "127.0.0.1:53", "denied.example.org", dns.TypeA); got.Rcode != dns.RcodeNameError {
		t.Errorf("a denied name: %s", dns.RcodeToString[got.Rcode])
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Error(err)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "denied.example.org"); err == nil || errors.As(err, new(tls.RecordHeaderError)) {
		t.Errorf("a denied name by TLS: %v", err)
	}
	w.carried("room", "198.51.100.200:9000")
	const n = 50
	for range n {
		w.refused("room", "198.51.100.90:22") // by the guard, of a port at which the relay accepts
		if _, err := w.dial("room", "tcp", "198.51.100.91:23"); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err) // inside: nobody accepts there
		}
		w.refused("room", "127.0.0.1:443") // no denial: the worker's own
	}
	w.guard.eventually(n, "tcp", func(e event) bool { return e.Verdict == "deny" && e.Kind == "tcp" && e.Address == "198.51.100.90" })

	// A port that opens and closes while all runs.
	l := w.listenOutside("198.51.100.210:9001")
	go testnet.Serve(l, func(c net.Conn) { io.WriteString(c, "outside\n") })
	there := func() bool {
		c, err := w.dial("room", "tcp", "198.51.100.210:9001")
		if err != nil {
			return false
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		return string(b) == "outside\n"
	}
	change := func(deny bool) {
		t.Helper()
		r := rule(t, "198.51.100.192/26:9001", 1)
		r.Line = ""
		var a control.Applied
		if err := w.host(control.Request{Op: control.OpChange, Changes: []firewall.Live{{Room: "room", Deny: deny, Rule: r}}}, &a); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(4 * time.Second); there() == deny; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("denied: %v, and the port is there: %v", deny, !deny)
			}
		}
	}
	if there() {
		t.Error("the port is there before it is allowed")
	}
	change(false)
	change(true)
	// More ports than a relay may have: the list before stays.
	many := rule(t, "198.51.100.192/26:10000", 1)
	many.Line, many.Ports = "", []firewall.PortRange{{First: 10000, Last: 10200}}
	err := w.host(control.Request{Op: control.OpChange, Changes: []firewall.Live{{Room: "room", Rule: many}}}, new(control.Applied))
	if err == nil || !strings.Contains(err.Error(), "a worker with a kernel of its own has 128 at most (B28)") {
		t.Errorf("201 ports more: %v", err)
	}
	w.carried("room", "198.51.100.200:9000")

	w.guard.kill()
	waiting := w.mustDial("room", "tcp", "198.51.100.201:9000")
	io.WriteString(waiting, "y")
	w.startGuard()
	if _, err := waiting.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection in the backlog wasn't served: %v", err)
	}
	w.outlet.kill()
	waiting = w.mustDial("room", "tcp", "198.51.100.201:9000")
	io.WriteString(waiting, "y")
	w.startOutlet()
	if _, err := waiting.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection that waited for the outlet wasn't served: %v", err)
	}
}

//go:build linux

package carrier_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// What a worker dials inside is dialled outside, at the same address, from loopback.
func TestCarries(t *testing.T) {
	w := newWorld(t)
	w.serve(443, whereTo)
	for _, to := range []string{"198.51.100.7:443", "10.0.0.1:443", "169.254.169.254:443"} {
		if got, want := w.said(to), to+" from 127.0.0.1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The host knows by a source of the loopback what it tries itself (control.Request.From).
	for from, want := range map[string]string{"127.0.0.1": "127.0.0.1", "127.5.6.7": "127.5.6.7", "10.1.1.1": "127.0.0.1"} {
		c, err := w.dialFrom(w.inside, "tcp4", from, "198.51.100.7:443")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "198.51.100.7:443 from "+want {
			t.Errorf("from %s: %q, %v", from, b, err)
		}
	}
	for _, to := range []string{"198.51.100.7:80", "127.0.0.1:80", "127.0.0.1:443"} { // nobody there; not for workers
		began := time.Now()
		c, err := w.dial(w.inside, "tcp4", to)
		if !(errors.Is(err, unix.ECONNRESET) || err == nil && wasReset(c)) || time.Since(began) > 2*time.Second {
			t.Errorf("%s is not reset at once: %v", to, err)
		}
	}
	if c, err := w.dial(w.inside, "tcp4", "198.51.100.7:9"); err == nil {
		t.Errorf("a port of nobody is connected: %v", c)
	}
}

// The end of one direction and a reset arrive as what they are.
func TestEnds(t *testing.T) {
	w := newWorld(t)
	reset := make(chan bool, 1)
	w.serve(443, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		c.Write(append([]byte("after the end "), b...))
	})
	w.serve(80, func(c *net.TCPConn) {
		b := make([]byte, 5)
		io.ReadFull(c, b)
		if string(b) == "reset" {
			c.SetLinger(0)
			return
		}
		c.Write([]byte("."))
		reset <- wasReset(c)
	})
	c := w.dialInside("198.51.100.7:443")
	text := repeat("0123456789", 100_000)
	go func() { c.Write(text); c.CloseWrite() }()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, append([]byte("after the end "), text...)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	c = w.dialInside("198.51.100.7:80")
	c.Write([]byte("reset"))
	if !wasReset(c) {
		t.Error("a reset of the server's is not one inside")
	}
	for range 20 { // who ended its data, too, hears of a reset, not of an end
		c := w.dialInside("198.51.100.7:80")
		c.Write([]byte("reset"))
		c.CloseWrite()
		if !wasReset(c) {
			t.Fatal("a reset is an end inside")
		}
	}
	c = w.dialInside("198.51.100.7:80")
	c.Write([]byte("hello"))
	c.Read(make([]byte, 1))
	c.SetLinger(0)
	c.Close()
	if !<-reset {
		t.Error("a reset of the worker's is not one outside")
	}
}

// A query by UDP is answered from the address that was asked, by the room's DNS.
func TestDNS(t *testing.T) {
	w := newWorld(t)
	w.serve(53, whereTo)
	var dns net.PacketConn
	if err := w.outside.Do(func() (err error) { dns, err = net.ListenPacket("udp4", "127.0.0.1:53"); return err }); err != nil {
		t.Fatal(err)
	}
	defer dns.Close()
	go func() {
		b := make([]byte, 65536)
		for {
			n, from, err := dns.ReadFrom(b)
			if err != nil {
				return
			}
			if string(b[:n]) != "silent" {
				dns.WriteTo(fmt.Appendf(nil, "answer to %s of %s", b[:n], from.(*net.UDPAddr).IP), from)
			}
		}
	}()
	ask := func(from, server, want string) {
		t.Helper()
		c, err := w.dialFrom(w.inside, "udp4", from, server)
		if err != nil {
			t.Fatal(err)
		}
		silent, err := w.dial(w.inside, "udp4", server)
		if err != nil {
			t.Fatal(err)
		}
		silent.Write([]byte("silent"))
		for _, query := range []string{"query", "another query"} {
			c.Write([]byte(query))
			b := make([]byte, 512)
			if n, err := c.Read(b); err != nil || string(b[:n]) != "answer to "+query+" of "+want { // connected: from that address alone
				t.Fatalf("from %q to %s: %q, %v, want one of %s", from, server, b[:n], err, want)
			}
		}
		c.Close()
		silent.Close()
	}
	for _, server := range []string{"127.0.0.1:53", "10.9.8.7:53", "198.51.100.53:53"} {
		ask("", server, "127.0.0.1")
		ask("127.0.0.1", server, "127.0.0.1")
		ask("10.1.1.1", server, "127.0.0.1")
		ask("127.5.6.7", server, "127.5.6.7")
	}
	for i := range 200 { // more than a relay has sockets for
		ask("127.0.0.1", fmt.Sprintf("10.9.7.%d:53", i+1), "127.0.0.1")
	}
	ask("127.0.0.1", "10.9.8.7:53", "127.0.0.1")
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.inner.Process.Pid)); err != nil || len(open) > 100 {
		t.Errorf("the relay has %d descriptors, %v", len(open), err)
	}
	if got := w.said("198.51.100.53:53"); got != "198.51.100.53:53 from 127.0.0.1" {
		t.Errorf("by TCP: %q", got)
	}
	long, _ := w.dial(w.inside, "udp4", "127.0.0.1:53")
	long.Write(make([]byte, carrier.MaxDNS+1))
	long.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := long.Read(make([]byte, 9)); err == nil {
		t.Errorf("a query of more than %d bytes is answered with %d", carrier.MaxDNS, n)
	}
}

// The relay accepts at the ports that the room tells, live.
func TestPorts(t *testing.T) {
	w := newWorld(t)
	w.serve(9000, whereTo)
	w.serve(9001, whereTo)
	w.serve(600, whereTo)
	tell := w.tellPorts()
	there := func(port string) bool {
		c, err := w.dial(w.inside, "tcp4", "198.51.100.7:"+port)
		if err != nil {
			return false
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		return string(b) == "198.51.100.7:"+port+" from 127.0.0.1"
	}
	for _, c := range []struct {
		ports []uint16
		there map[string]bool
	}{
		{[]uint16{9000}, map[string]bool{"9000": true, "9001": false}},
		{[]uint16{9001}, map[string]bool{"9000": false, "9001": true}},
		{[]uint16{9000, 9001}, map[string]bool{"9000": true, "9001": true}},
		{nil, map[string]bool{"9000": false, "9001": false}},
		{[]uint16{600, 9001}, map[string]bool{"9000": false, "9001": true, "600": true}},
	} {
		tell(c.ports...)
		for port, want := range c.there {
			testutil.Eventually(t, fmt.Sprintf("with %v, %s is there: %v", c.ports, port, want), func() bool { return there(port) == want })
		}
	}
	if got := w.said("127.0.0.1:600"); got != "127.0.0.1:600 from 127.0.0.1" { // an endpoint
		t.Errorf("got %q", got)
	}
	// The next outlet and the next relay hear of them, too.
	stop(w.outlet)
	w.startOutlet()
	tell(9000)
	testutil.Eventually(t, "the next outlet tells the ports", func() bool { return there("9000") && !there("9001") })
}

// B10: a connection to the worker's published port goes inward.
func TestInbound(t *testing.T) {
	w := newWorld(t, "8080")
	l := w.listen(w.inside, "127.0.0.1:8080")
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			c.Write(append([]byte("worker got "), b...))
			c.Close()
		}
	}()
	ask := func() string {
		c, err := w.dial(w.outside, "tcp4", "127.0.0.1:8080")
		if err != nil {
			return err.Error()
		}
		c.Write([]byte("hello"))
		c.(*net.TCPConn).CloseWrite()
		b, err := io.ReadAll(c)
		return fmt.Sprint(string(b), err)
	}
	testutil.Eventually(t, "the worker answers", func() bool { return ask() == "worker got hello<nil>" })
	l.Close()
	if c, err := w.dial(w.outside, "tcp4", "127.0.0.1:8080"); err == nil && !wasReset(c) {
		t.Error("a port where the worker doesn't listen is not reset")
	}
	if c, err := w.dial(w.outside, "tcp4", "198.51.100.7:8080"); err == nil {
		t.Errorf("the port is open at another address: %v", c.RemoteAddr())
	}
}

// B29: an outlet that ended is made again; what was carried is reset, what is dialled
// until then waits, and the relay stays.
func TestOutletEnds(t *testing.T) {
	w := newWorld(t)
	w.serve(443, func(c *net.TCPConn) { whereTo(c); io.Copy(io.Discard, c) })
	held := w.dialInside("198.51.100.7:443")
	held.Read(make([]byte, 1))
	for range 3 {
		stop(w.outlet)
		if !wasReset(held) {
			t.Error("what was carried is not reset")
		}
		waits := w.dialInside("198.51.100.8:443")
		time.Sleep(200 * time.Millisecond)
		w.startOutlet()
		b := make([]byte, 30)
		if n, err := waits.Read(b); err != nil || string(b[:n]) != "198.51.100.8:443 from 127.0.0.1"[:n] {
			t.Errorf("what waited: %q, %v", b[:n], err)
		}
		held = waits
	}
}

// B60: as many connections as there may be are carried; the next one waits for its turn
// and is lost by no one.
func TestManyConnections(t *testing.T) {
	w := newWorld(t)
	w.serve(443, func(c *net.TCPConn) { io.Copy(c, c) })
	echoed := func(c *net.TCPConn) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	conns := make([]*net.TCPConn, carrier.MaxStreams)
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < len(conns); i += 8 {
				c, err := w.dial(w.inside, "tcp4", "198.51.100.7:443")
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				conns[i] = c.(*net.TCPConn)
				if err := echoed(conns[i]); err != nil {
					t.Errorf("connection %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	next := w.dialInside("198.51.100.7:443")
	next.Write([]byte("y"))
	next.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := next.Read(make([]byte, 1)); err == nil {
		t.Errorf("one more than %d is carried: %d", carrier.MaxStreams, n)
	}
	conns[7].Close()
	next.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := next.Read(make([]byte, 1)); err != nil {
		t.Errorf("it isn't carried after another one ended: %v", err)
	}
	if err := echoed(conns[9]); err != nil {
		t.Errorf("another one: %v", err)
	}
}

// head is a head of a stream as its bytes.
func head(to string) []byte {
	return carrier.Head{Kind: carrier.TCP, Address: netip.MustParseAddrPort(to)}.Encode()
}

// A second relay is refused while one is connected.
func TestSecondRelay(t *testing.T) {
	w := newWorld(t)
	w.serve(443, whereTo)
	if got := w.said("198.51.100.7:443"); got != "198.51.100.7:443 from 127.0.0.1" {
		t.Errorf("before a second relay: %q", got)
	}
	second, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	second.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a second relay reads %d bytes, %v", n, err)
	}
	if got := w.said("198.51.100.7:443"); got != "198.51.100.7:443 from 127.0.0.1" {
		t.Errorf("after a second relay: %q", got)
	}
}

// B22: whatever a relay claims, it reaches what a worker in the room reaches, and at the
// room's loopback only what is there for workers.
func TestClaims(t *testing.T) {
	w := newHostileWorld(t)
	for _, port := range []int{53, 80, 531, 536, 600, 999, 1000, 8080} {
		w.serve(port, whereTo)
	}
	m := w.relay(nil)
	for to, want := range map[string]bool{
		"198.51.100.7:80": true, "169.254.169.254:80": true, "198.51.100.7:531": true, // the room's rules refuse it
		"127.0.0.1:53": true, "127.0.0.1:536": true, "127.0.0.1:600": true, "127.0.0.1:999": true,
		"127.0.0.1:80": false, "127.0.0.1:531": false, "127.0.0.1:1000": false, "127.0.0.1:8080": false,
		"127.0.0.2:53": false, "127.0.0.2:600": false, "127.255.255.255:536": false, "0.0.0.0:80": false, "0.0.0.0:53": false,
		"[::1]:53": false, "[::1]:600": false, "[::]:80": false, "255.255.255.255:80": false, "224.0.0.1:80": false,
		"198.51.100.7:0": false,
	} {
		s, err := m.Open(head(to))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(s)
		if got := err == nil && len(b) > 0; got != want {
			t.Errorf("%s: %q, %v, want %v", to, b, err, want)
		}
		s.Close()
	}
}

// Whatever isn't what a relay says ends its connection; the next one is served.
func TestBrokenHeads(t *testing.T) {
	w := newHostileWorld(t)
	w.serve(443, whereTo)
	for name, b := range map[string][]byte{
		"kind 0": {0}, "kind 99": {99}, "inbound": {byte(carrier.Inbound), 31, 144}, "session": {byte(carrier.Session)},
		"an address of 3 bytes": append([]byte{byte(carrier.TCP)}, 1, 2, 3, 0, 80), "of none": {byte(carrier.TCP)},
		"IPv4 in IPv6":   append(append([]byte{byte(carrier.TCP)}, make([]byte, 10)...), 255, 255, 1, 2, 3, 4, 0, 80),
		"a longer one":   append(head("198.51.100.7:443"), 0),
		"DNS and a byte": {byte(carrier.DNS), 0}, "DNS from another address": {byte(carrier.DNS), 198, 51, 100, 7}, "from 127.0.0.1": {byte(carrier.DNS), 127, 0, 0, 1},
		"a source outside": append(head("198.51.100.7:443"), 198, 51, 100, 8), "no source": append(head("198.51.100.7:443"), 0, 0, 0, 0),
		"a source and IPv6": append(head("[2001:db8::1]:443"), 127, 5, 6, 7),
	} {
		m := w.relay(nil)
		s, err := m.Open(b)
		if err == nil {
			_, err = io.ReadAll(s)
		}
		if err == nil {
			t.Errorf("%s: it is carried", name)
		}
		select {
		case <-m.Done():
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the connection goes on", name)
		}
	}
	m := w.relay(nil)
	m.Send(carrier.Head{Kind: carrier.Ports}.Encode())
	select {
	case <-m.Done():
	case <-time.After(5 * time.Second):
		t.Error("a message: the connection goes on")
	}
	s, err := w.relay(nil).Open(head("198.51.100.7:443"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); err != nil || string(b) != "198.51.100.7:443 from 127.0.0.1" {
		t.Errorf("afterwards: %q, %v", b, err)
	}
}

// newHostileWorld has no relay but those of the test.
func newHostileWorld(t testing.TB) *hostileWorld { return &hostileWorld{world: buildWorld(t)} }

type hostileWorld struct{ *world }

// relay connects as a relay; it is closed before the next one.
func (w *hostileWorld) relay(serve func(*mux.Stream)) *mux.Mux {
	w.Helper()
	var m *mux.Mux
	testutil.Eventually(w, "the outlet takes a relay", func() bool {
		c, err := net.Dial("unix", w.socket)
		if err != nil {
			return false
		}
		m = mux.New(c, mux.Config{Odd: true, Streams: carrier.MaxStreams, Message: func([]byte) error { return nil },
			Accept: func([]byte) error { return nil }, Serve: serve})
		go m.Run()
		select {
		case <-m.Done():
			return false
		case <-time.After(50 * time.Millisecond):
			return true
		}
	})
	w.Cleanup(func() { m.End(nil) })
	return m
}

func FuzzHead(f *testing.F) {
	for _, h := range []carrier.Head{
		{Kind: carrier.TCP, Address: netip.MustParseAddrPort("198.51.100.7:443")}, {Kind: carrier.TCP, Address: netip.MustParseAddrPort("198.51.100.7:443"), Source: netip.MustParseAddr("127.5.6.7")},
		{Kind: carrier.TCP, Address: netip.MustParseAddrPort("[2001:db8::1]:443")},
		{Kind: carrier.DNS}, {Kind: carrier.DNS, Source: netip.MustParseAddr("127.5.6.7")}, {Kind: carrier.Ready}, {Kind: carrier.Session}, {Kind: carrier.Inbound, Port: 8080}, {Kind: carrier.Ports, Ports: []uint16{22, 9000}},
		{Kind: carrier.Output, Stream: carrier.Stderr, Line: "a line"}, {Kind: carrier.Output, Stream: carrier.Stdout},
		{Kind: carrier.Refused, Protocol: 17, Address: netip.MustParseAddrPort("198.51.100.7:443")},
	} {
		f.Add(h.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := carrier.Decode(b); err == nil && !bytes.Equal(h.Encode(), b) {
			t.Errorf("%x is decoded to %+v, which is %x", b, h, h.Encode())
		}
	})
}

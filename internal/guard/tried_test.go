package guard

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// Of a room's denials those of what `firewall explain` tries are marked, and no other,
// though it tries the same at the same time: questions, requests, and packets that the
// room's rules refuse.
func TestOnlyWhatIsTriedIsMarked(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	source := netip.MustParseAddrPort("127.83.1.2:61234")
	var x control.Explanation
	for _, host := range []string{"denied.example.org", testnet.Evil, testnet.Evil6} {
		if err := w.host(control.Request{Op: control.OpExplain, Room: "room", Host: host, Port: 80, From: source}, &x); err != nil || x.Allowed {
			t.Fatalf("%s: %+v %v", host, x, err)
		}
	}
	try := func(source netip.AddrPort) {
		t.Helper()
		dial := func(network, addr string) (net.Conn, error) {
			d := net.Dialer{Timeout: 5 * time.Second}
			four := net.IP(source.Addr().AsSlice())
			switch network {
			case "udp4":
				d.LocalAddr = &net.UDPAddr{IP: four}
			case "tcp4":
				d.LocalAddr = &net.TCPAddr{IP: four}
			case "tcp6":
				d.LocalAddr = &net.TCPAddr{Port: int(source.Port())}
			}
			var c net.Conn
			err := w.rooms["room"].ns.Do(func() (err error) { c, err = d.Dial(network, addr); return err })
			return c, err
		}
		q, err := dial("udp4", "127.0.0.11:53")
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		c := &dns.Conn{Conn: q}
		if err := c.WriteMsg(new(dns.Msg).SetQuestion("denied.example.org.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadMsg(); err != nil {
			t.Fatal(err)
		}
		h, err := dial("tcp4", testnet.Evil+":80")
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		fmt.Fprint(h, "GET / HTTP/1.1\r\nHost: denied.example.org\r\nConnection: close\r\n\r\n")
		if b, err := io.ReadAll(h); len(b) == 0 {
			t.Fatal(err)
		}
		for _, to := range []struct{ network, addr string }{{"tcp4", testnet.Evil + ":22"}, {"tcp6", "[" + testnet.Evil6 + "]:22"}} {
			if c, err := dial(to.network, to.addr); err == nil {
				c.Close()
				t.Errorf("%s is open", to.addr)
			}
		}
	}
	since := time.Now()
	try(netip.MustParseAddrPort("127.0.0.1:0"))
	try(source)
	var got []string
	var f control.Failures
	if err := w.host(control.Request{Op: control.OpFailed, Worker: w.policy.Rooms[0].Workers[0], Since: since}, &f); err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Events {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Address, " ", e.Explained))
	}
	slices.Sort(got)
	want := []string{
		"dns  false", "dns  true", "http " + testnet.Evil + " false", "http " + testnet.Evil + " true",
		"kernel " + testnet.Evil6 + " false", "kernel " + testnet.Evil6 + " true", "kernel " + testnet.Evil + " false", "kernel " + testnet.Evil + " true",
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTriedIsBounded(t *testing.T) {
	var x tried
	for i := range 2 * maxTried {
		x.add(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, 2, byte(i)}), 61000))
	}
	if len(x.until) != maxTried {
		t.Errorf("%d sources are kept, want %d", len(x.until), maxTried)
	}
	for from, want := range map[string]bool{"127.1.2.3:5": true, "[::ffff:127.1.2.3]:5": true, "127.0.0.1:61000": false, "[::1]:61000": true, "[::1]:61001": false} {
		if got := x.has(netip.MustParseAddrPort(from)); got != want {
			t.Errorf("%s: %v, want %v", from, got, want)
		}
	}
	for from := range x.until {
		x.until[from] = time.Now().Add(-time.Second)
	}
	if x.has(netip.MustParseAddrPort("127.1.2.3:5")) {
		t.Error("a source is kept beyond its time")
	}
}

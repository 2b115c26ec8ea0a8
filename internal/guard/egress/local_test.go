package egress

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

func TestPlaceOfThisMachine(t *testing.T) {
	var l Local
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		if p, err := l.Place(ip); p != Own || err != nil {
			t.Errorf("%s: %d %v", ip, p, err)
		}
	}
	if p, err := l.Place(netip.MustParseAddr("::ffff:127.0.0.1")); p != Own || err != nil {
		t.Errorf("a mapped address: %d %v", p, err)
	}
}

func TestNextHops(t *testing.T) {
	hop := func(a string) []byte {
		ip := netip.MustParseAddr(a).AsSlice()
		b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtNexthop+4+len(ip)))
		b = append(b, 0, 0, 0, 0, 0, 0)
		b = binary.NativeEndian.AppendUint16(b, uint16(4+len(ip)))
		b = binary.NativeEndian.AppendUint16(b, unix.RTA_GATEWAY)
		return append(b, ip...)
	}
	out := map[netip.Addr]bool{}
	addNextHops(out, append(hop("198.18.0.1"), hop("198.18.0.5")...))
	if len(out) != 2 || !out[netip.MustParseAddr("198.18.0.5")] {
		t.Errorf("%v", out)
	}
	for i := range 24 {
		addNextHops(out, append(hop("198.18.0.1"), hop("198.18.0.5")...)[:i]) // no panic
	}
}

func TestInterleave(t *testing.T) {
	var in, want []netip.Addr
	for _, s := range []string{"198.51.100.1", "198.51.100.2", "2001:db8::1"} {
		in = append(in, netip.MustParseAddr(s))
	}
	for _, s := range []string{"2001:db8::1", "198.51.100.1", "198.51.100.2"} {
		want = append(want, netip.MustParseAddr(s))
	}
	if got := interleave(in); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The upstream dialler dials its own addresses only, whoever asks.
func TestUpstreamKnowsItsOwn(t *testing.T) {
	u := NewUpstream(netip.MustParseAddrPort("198.51.100.53:53"))
	for _, s := range []string{"198.51.100.53:54", "198.51.100.54:53", "127.0.0.1:53"} {
		if _, err := u.Dial(context.Background(), "udp", netip.MustParseAddrPort(s)); err == nil {
			t.Errorf("%s was dialled", s)
		}
	}
	if !u.Has(netip.MustParseAddr("::ffff:198.51.100.53")) {
		t.Error("a mapped address isn't recognised")
	}
}

// TestCheckStandsBeforeConnect is B31: dial itself refuses, whatever was
// checked before.
func TestCheckStandsBeforeConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := netip.MustParseAddrPort(l.Addr().String())
	p := firewall.RoomPolicy{Mode: firewall.Open}
	x := &Dialer{Local: &Local{}, Upstream: NewUpstream()}
	d := firewall.Decision{Allowed: true, Reason: firewall.ReasonOpen}
	if c, err := x.dial(context.Background(), &Want{Matcher: p.Compile(), Decision: d, Port: to.Port()}, to.Addr()); err == nil {
		c.Close()
		t.Error("loopback was dialled")
	}
}

func TestNewProxy(t *testing.T) {
	p, err := NewProxy(NewUpstream(), "http://u:p@proxy.example.org:3128")
	if err != nil || p.Host != "proxy.example.org" || p.Port != 3128 || p.auth != "Basic dTpw" || p.Fixed() {
		t.Errorf("%+v %v", p, err)
	}
	if p, err = NewProxy(NewUpstream(), "http://198.51.100.80"); err != nil || !p.Fixed() || p.Port != 80 {
		t.Errorf("%+v %v", p, err)
	}
	p.Fix(netip.MustParseAddr("198.51.100.81"))
	if at := p.addr.Load(); at.Addr().String() != "198.51.100.80" {
		t.Errorf("the address moved to %s", at)
	}
	for _, s := range []string{"", "https://proxy.example.org", "socks5://x:1", "http://", "http://x:0", "http://x:65536"} {
		if _, err := NewProxy(NewUpstream(), s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

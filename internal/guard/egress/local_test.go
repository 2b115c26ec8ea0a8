package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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
	u := NewUpstream(&Local{})
	if err := u.Add(netip.MustParseAddrPort("198.51.100.53:53"), OfFile); err != nil {
		t.Fatal(err)
	}
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
	x := &Dialer{Local: &Local{}, Upstream: NewUpstream(&Local{})}
	d := firewall.Decision{Allowed: true, Reason: firewall.ReasonOpen}
	if c, err := x.dial(context.Background(), &Want{Matcher: p.Compile(), Decision: d, Port: to.Port()}, to.Addr()); err == nil {
		c.Close()
		t.Error("loopback was dialled")
	}
}

func TestNewProxy(t *testing.T) {
	p, err := NewProxy(NewUpstream(&Local{}), "http://u:p@proxy.example.org:3128", OfFile)
	if err != nil || p.Host != "proxy.example.org" || p.Port != 3128 || p.auth != "Basic dTpw" || p.Fixed() {
		t.Errorf("%+v %v", p, err)
	}
	if p, err = NewProxy(NewUpstream(&Local{}), "http://198.51.100.80", OfFile); err != nil || !p.Fixed() || p.Port != 80 {
		t.Errorf("%+v %v", p, err)
	}
	_ = p.Fix(netip.MustParseAddr("198.51.100.81"))
	if at := p.addr.Load(); at.Addr().String() != "198.51.100.80" {
		t.Errorf("the address moved to %s", at)
	}
	for _, s := range []string{"", "https://proxy.example.org", "socks5://x:1", "http://", "http://x:0", "http://x:65536"} {
		if _, err := NewProxy(NewUpstream(&Local{}), s, OfFile); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// upstreamsOfAFile are what a repository's proxy and resolver must not be, and
// whether it is refused before anybody dials: addresses of the machine's own
// are known then only.
var upstreamsOfAFile = []struct {
	name, addr string
	early      bool
}{
	{"loopback", "127.0.0.1", true},
	{"all of loopback", "127.8.9.10", true},
	{"loopback, IPv6", "::1", true},
	{"loopback, mapped", "::ffff:127.0.0.1", true},
	{"loopback, by NAT64", "64:ff9b::7f00:1", true},
	{"loopback, compatible", "::7f00:1", true},
	{"loopback, by 6to4", "2002:7f00:1::", true},
	{"this machine", "0.0.0.0", true},
	{"this machine, IPv6", "::", true},
	{"link-local", "169.254.1.1", true},
	{"link-local, IPv6", "fe80::1", true},
	{"metadata", "169.254.169.254", true},
	{"metadata, mapped", "::ffff:169.254.169.254", true},
	{"metadata, by NAT64", "64:ff9b::a9fe:a9fe", true},
	{"metadata, IPv6", "fd00:ec2::254", true},
	{"metadata, public", "168.63.129.16", true},
	{"multicast", "224.0.0.1", true},
	{"own", "198.51.100.7", false},
}

// TestUpstreamsOfAFile is B26 and B31: what the repository names as proxy or
// resolver is checked as what a worker asks for; the user's is not.
func TestUpstreamsOfAFile(t *testing.T) {
	own := netip.MustParseAddr("198.51.100.7")
	for _, tt := range upstreamsOfAFile {
		t.Run(tt.name, func(t *testing.T) {
			at := netip.AddrPortFrom(netip.MustParseAddr(tt.addr).Unmap(), 3128)
			local := &Local{own: map[netip.Addr]bool{own: true}, at: time.Now()}
			u := NewUpstream(local)
			if err := u.Add(at, OfFile); (err != nil) != tt.early {
				t.Errorf("Add: %v, want refused %v", err, tt.early)
			}
			u.known[at] = OfFile // the check before connect stands by itself
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := u.Dial(ctx, "tcp", at); err == nil || !errors.Is(err, errClosed) {
				t.Errorf("Dial: %v, want closed", err)
			}
			if err := u.Add(at, OfUser); err != nil {
				t.Errorf("the user's: %v", err)
			}
			if _, err := u.Dial(ctx, "tcp", at); err == nil || strings.Contains(err.Error(), "is closed") {
				t.Errorf("the user's: %v", err)
			}
		})
	}
}

// TestProxyThatResolvesHere is B31: a name decides nothing, its address does.
func TestProxyThatResolvesHere(t *testing.T) {
	p, err := NewProxy(NewUpstream(&Local{}), "http://proxy.example.org:3128", OfFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Fix(netip.MustParseAddr("127.0.0.1")); err == nil || p.Fixed() {
		t.Errorf("Fix: %v, fixed %v", err, p.Fixed())
	}
	if _, _, err := p.connect(t.Context(), netip.MustParseAddrPort("198.51.100.1:443")); err == nil || !strings.Contains(err.Error(), "proxy.example.org:3128 is at an address that only your environment or --env-file may name") {
		t.Errorf("connect: %v", err)
	}
	if err := p.Fix(netip.MustParseAddr("198.51.100.80")); err != nil || !p.Fixed() {
		t.Errorf("a later answer: %v", err)
	}
}

package guard

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/guard/proxy"
)

// TestRevoke is B27 as far as the guard carries it: a policy without the rule
// resets what the rule had allowed, and nothing else.
func TestRevoke(t *testing.T) {
	compiled := func(lines ...string) *policy.Room {
		p := restricted(t, lines...).Rooms[0]
		return &policy.Room{RoomPolicy: p, Matcher: p.Compile()}
	}
	flows := &proxy.Flows{}
	carried := func(name string) *net.TCPConn {
		in, client := testutil.TCPPair(t)
		out, server := testutil.TCPPair(t)
		n, err := firewall.ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		flows.Add(in, out, func(p *policy.Room) bool { return p.Matcher.Name(n, 443).Allowed })
		_ = server
		return client
	}
	kept, gone := carried("kept.example.org"), carried("gone.example.org")
	if n := flows.Revoke(compiled("kept.example.org")); n != 1 {
		t.Errorf("%d revoked, want 1", n)
	}
	one := make([]byte, 1)
	gone.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := gone.Read(one); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the revoked connection: %v", err)
	}
	kept.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var ne net.Error
	if _, err := kept.Read(one); !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("the other connection: %v", err)
	}
	flows.Close()
	if _, err := kept.Read(one); err == io.EOF || err == nil {
		t.Errorf("after Close: %v", err)
	}
	a, b := testutil.TCPPair(t)
	if f := flows.Add(a, b, nil); f != nil {
		t.Error("a closed room took another connection")
	}
}

// TestReplace: the guard's own swap of the policy.
func TestReplace(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	g := newGuard(t, p)
	n, _ := firewall.ParseName("allowed.example.org")
	if !g.store.Room("room").Matcher.Name(n, 443).Allowed {
		t.Fatal("control: not allowed before")
	}
	none := restricted(t)
	none.Version = firewall.PolicyVersion
	a, err := g.Do(t.Context(), control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&none)})
	if err != nil {
		t.Fatal(err)
	}
	if a := a.(control.Applied); a.Generation != 2 || a.Digest != firewall.Digest(&none) {
		t.Errorf("%+v", a)
	}
	if g.store.Room("room").Matcher.Name(n, 443).Allowed || g.store.Room("nobody").Matcher.Addr(netip.MustParseAddr("198.51.100.1"), 443).Allowed {
		t.Error("still allowed")
	}
}

//go:build linux

package room

import (
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEveryAddress: lo has addresses whose networks are all of IPv4, for a sandbox that
// copies them. Nothing changes for what runs in the room itself, but for IPv6, which has no
// route that would be copied.
func TestEveryAddress(t *testing.T) {
	r := startRoom(t, "--outlet", "--every-address")
	addresses := strings.Fields(r.command("", "ip", "-o", "-4", "addr", "show", "dev", "lo"))
	for _, want := range []string{"127.0.0.1/8", "127.255.255.254/1", "240.0.0.1/1"} {
		if !strings.Contains(" "+strings.Join(addresses, " ")+" ", " inet "+want+" ") {
			t.Errorf("no %s: %s", want, addresses)
		}
	}
	if got := strings.TrimSpace(r.command("", "ip", "-4", "route")); got != "default dev lo proto static scope link src 127.0.0.1" {
		t.Errorf("routes: %s", got)
	}
	if got := r.command("", "ip", "-6", "route", "show", "default"); got != "" {
		t.Errorf("IPv6 routes: %s", got)
	}
	for _, to := range []string{"198.51.100.7", "2.0.0.1", "250.0.0.1"} {
		if got := r.command("", "ip", "-4", "route", "get", to); !strings.Contains(got, " src 127.0.0.1 ") {
			t.Errorf("the route to %s: %s", to, got)
		}
	}
	r.expect(1000, "dial tcp4 "+outside["4"]+" 443", "ok")
	r.expect(1000, "dial tcp4 "+outside["4"]+" 23", "ECONNREFUSED")
	for _, a := range everyAddress { // as the outlet dials: from 127.0.0.1
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, Timeout: patience / 2}
		r.inside(func() {
			if _, err := d.Dial("tcp4", a.Addr().String()+":23"); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("dial %s: %v", a.Addr(), err)
			}
		})
	}
	r.expect(1000, "dial tcp6 "+outside["6"]+" 443", "ENETUNREACH")
}

package guard

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// disguised is a connection whose first bytes are changed: f gets the ClientHello.
type disguised struct {
	net.Conn
	f func([]byte) []byte
}

func (d *disguised) Write(b []byte) (int, error) {
	f := d.f
	if f == nil {
		return d.Conn.Write(b)
	}
	d.f = nil
	if _, err := d.Conn.Write(f(append([]byte{}, b...))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func version(major, minor byte) func([]byte) []byte {
	return func(b []byte) []byte { b[1], b[2] = major, minor; return b }
}

func behind(preface string) func([]byte) []byte {
	return func(b []byte) []byte { return append([]byte(preface), b...) }
}

// TestDenyWinsOverDisguise: a denied name doesn't get through in a hello that
// servers read and a strict reader takes for something else than TLS (N4).
func TestDenyWinsOverDisguise(t *testing.T) {
	deny := []firewall.Rule{denyRule(t, "denied.example.org")}
	ssh := denyRule(t, "denied.example.org")
	ssh.Ports = []firewall.PortRange{{First: 22, Last: 22}}
	w := newWorld(t, firewall.Policy{Rooms: []firewall.RoomPolicy{
		{Room: "open", Mode: firewall.Open, Deny: deny},
		{Room: "range", Mode: firewall.Restricted, Allow: allow(t, "198.51.100.0/24:80,443"), Deny: deny},
		{Room: "ssh", Mode: firewall.Open, Deny: []firewall.Rule{ssh}},
		{Room: "all", Mode: firewall.Open},
	}})
	shake := func(name string, f func([]byte) []byte) func(net.Conn) string {
		return func(c net.Conn) string {
			defer c.Close()
			return outcome(tls.Client(&disguised{c, f}, &tls.Config{ServerName: name, RootCAs: w.in.Roots()}).Handshake())
		}
	}
	for _, x := range []struct {
		name  string
		f     func([]byte) []byte
		ended string // how it ends where names are denied
		plain string // and for an allowed name
	}{
		{"3.0", version(3, 0), "alert", "ok"},
		{"3.5", version(3, 5), "alert", "ok"},
		{"3.255", version(3, 255), "alert", "ok"},
		{"0.1", version(0, 1), "reset", "reset"},
		{"15.1", version(15, 1), "reset", "reset"},
		{"an alert", behind("\x15\x03\x01\x00\x02\x01\x5a"), "reset", "reset"},
		{"two alerts", behind("\x15\x03\x01\x00\x02\x01\x5a\x15\x03\x01\x00\x02\x01\x5a"), "reset", "reset"},
		{"a record of another type", behind("\x18\x03\x01\x00\x01\x00"), "reset", "reset"},
		{"PROXY protocol", behind("PROXY UNKNOWN\r\n"), "reset", "reset"},
	} {
		for _, room := range []string{"open", "range"} {
			for name, want := range map[string]string{"denied.example.org": x.ended, "allowed.example.org": x.plain} {
				if got := w.to(room, testnet.Denied+":443", shake(name, x.f)); got != want {
					t.Errorf("%s, %s, 443, %s: %s, want %s", room, x.name, name, got, want)
				}
				if got := w.connect(room, testnet.Denied+":443", shake(name, x.f)); got != "200, "+want {
					t.Errorf("%s, %s, CONNECT address, %s: %s, want 200, %s", room, x.name, name, got, want)
				}
			}
		}
		for name, want := range map[string]string{"denied.example.org": x.ended, "allowed.example.org": x.plain} {
			if got := w.connect("open", "allowed.example.org:443", shake(name, x.f)); got != "200, "+want {
				t.Errorf("%s, CONNECT name, %s: %s, want 200, %s", x.name, name, got, want)
			}
		}
	}
	// What isn't TLS passes where no name is denied on the port.
	plain := func(c net.Conn) string {
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: denied.example.org\r\n\r\n")
		_, err := c.Read(make([]byte, 1))
		return outcome(err)
	}
	for room, want := range map[string]string{"open": "reset", "range": "reset", "ssh": "ok", "all": "ok"} {
		if got := w.to(room, testnet.Allowed+":443", plain); got != want {
			t.Errorf("%s: %s, want %s", room, got, want)
		}
		if room == "range" {
			continue
		}
		if got := w.connect(room, "allowed.example.org:443", plain); got != "200, "+want {
			t.Errorf("%s: CONNECT: %s, want 200, %s", room, got, want)
		}
	}
	w.guard.eventually(12, "denials by name", func(e event) bool {
		return e.Verdict == "deny" && e.Reason == "denied" && e.Name == "denied.example.org"
	})
}

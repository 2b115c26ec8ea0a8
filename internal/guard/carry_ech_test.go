package guard

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// echConfig is a list of one ECHConfig for an outer name (RFC 9849 §4).
func echConfig(t testing.TB, outer string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub := key.PublicKey().Bytes()
	body := []byte{7, 0, 0x20, 0, byte(len(pub))} // id, DHKEM(X25519)
	body = append(body, pub...)
	body = append(body, 0, 4, 0, 1, 0, 1, 32, byte(len(outer))) // HKDF-SHA256, AES-128-GCM
	body = append(append(body, outer...), 0, 0)
	c := binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(body)))
	c = append(c, body...)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(c))), c...)
}

// TestECH is N5: behind an outer name that is allowed, any name of that provider
// may stand; so it takes a line that says so.
func TestECH(t *testing.T) {
	p := restricted(t, "allowed.example.org", "outer.example.org", "198.51.100.192/26:443")
	p.Rooms[0].Allow[1].ECH = true
	p.Rooms[0].Deny = []firewall.Rule{denyRule(t, "denied.example.org")}
	w := newWorld(t, p)
	w.in.Answer("outer.example.org", testnet.A("198.51.100.12"))
	// shake tells how a handshake with ECH ends. Servers here have no key for it:
	// that one answers at all shows that the hello came through.
	shake := func(c net.Conn, outer string) error {
		nc := tls.Client(c, &tls.Config{
			ServerName: "hidden.example.net", RootCAs: w.in.Roots(), MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, outer),
		})
		return nc.Handshake()
	}
	for _, c := range []struct{ addr, outer, want string }{
		{testnet.Allowed, "allowed.example.org", "handshake failure"},
		{testnet.Allowed, "denied.example.org", "access denied"},
		{testnet.Allowed, "evil.example.net", "access denied"},
		{"198.51.100.200", "other.example.org", "handshake failure"}, // a range's line doesn't say it either
		{testnet.Allowed, "outer.example.org", ""},
	} {
		w.in.Reset()
		err := shake(w.mustDial("room", "tcp", c.addr+":443"), c.outer)
		rejected := new(tls.ECHRejectionError)
		if passed := errors.As(err, &rejected); passed != (c.want == "") || !passed && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.outer, err)
		}
		if n := len(w.in.Counts().Hellos); n > 0 != (c.want == "") {
			t.Errorf("%s: %d hellos arrived", c.outer, n)
		}
	}
	w.guard.eventually(1, "ECH of an allowed name", func(e event) bool {
		return e.Verdict == "deny" && e.Reason == "ech" && e.Name == "allowed.example.org" && e.Rule == "workshop.yaml:10" && e.Suggest == "{host: allowed.example.org, ech: allow}"
	})
	w.guard.eventually(1, "ECH let through", func(e event) bool {
		return e.Verdict == "note" && e.Reason == "ech" && e.Name == "outer.example.org" && e.Rule == "workshop.yaml:11" && e.Kind == "tls"
	})
	w.guard.eventually(1, "its connection", func(e event) bool { return e.Verdict == "allow" && e.Name == "outer.example.org" })

	// The same in a tunnel.
	for outer, want := range map[string]string{"allowed.example.org": "handshake failure", "outer.example.org": ""} {
		c := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, "CONNECT "+outer+":443 HTTP/1.1\r\nHost: "+outer+"\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
			t.Fatal(err)
		}
		err := shake(c, outer)
		if passed := errors.As(err, new(*tls.ECHRejectionError)); passed != (want == "") || !passed && !strings.Contains(err.Error(), want) {
			t.Errorf("tunnel to %s: %v", outer, err)
		}
	}
}

// Mode open promises nothing about names: ECH passes, and is noted where hellos
// are looked at for deny lines; a denied outer name is denied.
func TestECHOpen(t *testing.T) {
	w := newWorld(t, firewall.Policy{Rooms: []firewall.RoomPolicy{{
		Room: "room", Mode: firewall.Open, Workers: []string{"w"}, Deny: []firewall.Rule{denyRule(t, "denied.example.org")},
	}}})
	shake := func(outer string) error {
		c := tls.Client(w.mustDial("room", "tcp", "198.51.100.41:443"), &tls.Config{
			ServerName: "denied.example.org", RootCAs: w.in.Roots(), MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, outer),
		})
		return c.Handshake()
	}
	if err := shake("outer.example.org"); !errors.As(err, new(*tls.ECHRejectionError)) {
		t.Errorf("open: %v", err)
	}
	if err := shake("denied.example.org"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("a denied outer name: %v", err)
	}
	w.guard.eventually(1, "the note", func(e event) bool { return e.Verdict == "note" && e.Reason == "ech" && e.Name == "outer.example.org" })
}

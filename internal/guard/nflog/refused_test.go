package nflog

import (
	"encoding/hex"
	"fmt"
	"testing"
)

// Resets as a kernel answers a SYN to a foreign address (IPv4 with options too),
// and a datagram.
var answers = []struct{ packet, want string }{
	{"4500002800004000400649e9c633640 77f000001 0017a000 00000000 00000001 50140000 00000000", "tcp 198.51.100.7 23"},
	{"46000028000040004006 49e9 c6336407 7f000001 01010101 0017a000 00000000 00000001 50140000 00000000", "tcp 198.51.100.7 23"},
	{"6000000000140640 20010db8000000000000000000000007 00000000000000000000000000000001 0017a000 00000000 00000001 50140000 00000000", "tcp 2001:db8::7 23"},
	{"4500001d000040004011 49e9 7f000001 c6336407 a000007b 00090000 78", "udp 198.51.100.7 123"},
	{"6000000000092b40 00000000000000000000000000000001 20010db8000000000000000000000007 1100000000000000", "ip43 2001:db8::7 0"},
}

func packetOf(t testing.TB, text string) []byte {
	t.Helper()
	digits := make([]byte, 0, len(text))
	for _, c := range []byte(text) {
		if c != ' ' {
			digits = append(digits, c)
		}
	}
	b, err := hex.DecodeString(string(digits))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefused(t *testing.T) {
	for _, c := range answers {
		b := packetOf(t, c.packet)
		p, ok := refused(b)
		if got := text(p); !ok || got != c.want {
			t.Errorf("%s: %q %v, want %q", c.packet, got, ok, c.want)
		}
		for n := range b { // no panic, and no half of an address
			if p, ok := refused(b[:n]); ok && text(p) != c.want && p.Port != 0 {
				t.Errorf("%d bytes: %q", n, text(p))
			}
		}
	}
}

func FuzzRefused(f *testing.F) {
	for _, c := range answers {
		f.Add(packetOf(f, c.packet))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := refused(b); ok && (!p.Dst.IsValid() || p.Protocol == "") {
			t.Fatalf("%+v", p)
		}
	})
}

func text(p Packet) string { return fmt.Sprintf("%s %s %d", p.Protocol, p.Dst, p.Port) }

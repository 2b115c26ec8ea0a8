package tlshello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
)

// cut puts a message into records that end where the message has the given
// lengths.
func cut(msg []byte, at ...int) (out []byte) {
	from := 0
	for _, to := range append(at, len(msg)) {
		out = append(out, records(msg[from:to], 1<<14)...)
		from = to
	}
	return out
}

// with returns a hello whose body is changed.
func with(change func(body []byte) []byte) []byte {
	msg := message(sni("api.example.org"))
	body := change(append([]byte{}, msg[4:]...))
	return append([]byte{typeClientHello, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// TestShapes is N7: hellos as clients send them are read however they are cut;
// what two parsers could read differently is refused.
func TestShapes(t *testing.T) {
	grease := []ext{{0x0a0a, nil}, sni("api.example.org"), {0x1a1a, []byte{0}}, {51, append([]byte{0, 5, 0x2a, 0x2a, 0, 1, 0}, 0)}}
	big := ext{21, make([]byte, 20<<10)}
	kyber := recorded(t, &tls.Config{ServerName: "api.example.org", CurvePreferences: []tls.CurveID{tls.X25519MLKEM768}})
	if len(kyber) < 1200 {
		t.Fatalf("a hello of %d bytes has no post-quantum key share", len(kyber))
	}
	versions := map[string][]byte{}
	for name, v := range map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		versions["TLS "+name] = recorded(t, &tls.Config{ServerName: "api.example.org", MinVersion: v, MaxVersion: v})
	}
	msg := message(sni("api.example.org"))
	early := append(records(message(sni("api.example.org"), ext{42, nil}), 1<<14), append([]byte{20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 4}, "data"...)...)
	accepted := map[string][]byte{
		"post-quantum":                         kyber,
		"post-quantum, three records":          cut(kyber[5:], 400, 900),
		"GREASE":                               records(message(grease...), 1<<14),
		"20 KB of padding":                     records(message(big, sni("api.example.org")), 1<<14),
		"20 KB of padding behind":              records(message(sni("api.example.org"), big), 1<<14),
		"cut in the message's header":          cut(msg, 1, 3),
		"cut in the name":                      cut(msg, len(msg)-5),
		"cut before the extension":             cut(msg, len(msg)-20),
		"early data":                           early,
		"a session id of 32 bytes":             records(with(func(b []byte) []byte { return append(append(append(b[:34:34], 32), make([]byte, 32)...), b[35:]...) }), 1<<14),
		"an old version in records, 1.3 below": append([]byte{22, 3, 3}, records(msg, 1<<14)[3:]...),
	}
	for _, minor := range []byte{0, 5, 255} { // as servers do (RFC 8446 §5.1)
		accepted[fmt.Sprintf("3.%d in the record", minor)] = append([]byte{22, 3, minor}, records(msg, 1<<14)[3:]...)
	}
	for name, in := range versions {
		accepted[name] = in
	}
	for name, in := range accepted {
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.HalfReader(bytes.NewReader(in))} {
			got, read, err := Read(r, make([]byte, 0, 64))
			if err != nil || got.String() != "api.example.org" || !bytes.HasPrefix(in, read) {
				t.Errorf("%s: %q %v", name, got, err)
			}
		}
	}
	name := func(s string) []byte { return records(message(sni(s)), 1<<14) }
	for what, c := range map[string]struct {
		in  []byte
		err error // nil: any
	}{
		"SSLv2":                        {[]byte{0x80, 0x2e, 1, 3, 1, 0, 21, 0, 0, 0, 16}, ErrNotTLS},
		"another major version":        {append([]byte{22, 2, 1}, records(msg, 1<<14)[3:]...), ErrNotTLS},
		"after an alert":               {append([]byte{21, 3, 1, 0, 2, 1, 0}, records(msg, 1<<14)...), ErrNotTLS},
		"after ChangeCipherSpec":       {append([]byte{20, 3, 1, 0, 1, 1}, records(msg, 1<<14)...), ErrNotTLS},
		"an alert within":              {append(cut(msg, 10)[:15:15], append([]byte{21, 3, 1, 0, 2, 1, 0}, records(msg[10:], 1<<14)...)...), ErrNotTLS},
		"ChangeCipherSpec within":      {append(cut(msg, 10)[:15:15], append([]byte{20, 3, 1, 0, 1, 1}, records(msg[10:], 1<<14)...)...), ErrNotTLS},
		"an empty record within":       {append(cut(msg, 10)[:15:15], append([]byte{22, 3, 1, 0, 0}, records(msg[10:], 1<<14)...)...), nil},
		"another message first":        {records(append([]byte{0, 0, 0, 0}, msg...), 1<<14), nil},
		"a second hello in the record": {records(append(append([]byte{}, msg...), msg...), 1<<14), nil},
		"two SNI extensions":           {records(message(sni("api.example.org"), sni("api.example.org")), 1<<14), nil},
		"two ECH extensions":           {records(message(sni("api.example.org"), ext{extECH, nil}, ext{extECH, nil}), 1<<14), nil},
		"two names":                    {records(message(sni("api.example.org", "api.example.org")), 1<<14), nil},
		"a name of another type": {records(message(ext{extServerName, func() []byte {
			b := sni("api.example.org").body
			b[2] = 1
			return b
		}()}), 1<<14), nil},
		"bytes behind the name":       {records(message(ext{extServerName, append(sni("api.example.org").body, 0)}), 1<<14), nil},
		"bytes behind the extensions": {records(with(func(b []byte) []byte { return append(b, 0) }), 1<<14), nil},
		"no extensions":               {records(with(func(b []byte) []byte { return b[:41] }), 1<<14), ErrNoName},
		"odd cipher suites":           {records(with(func(b []byte) []byte { b[36] = 1; return b }), 1<<14), nil},
		"upper-case IP":               {name("0X7F.1"), nil},
		"IPv4":                        {name("127.0.0.1"), nil},
		"IPv4 with a dot":             {name("127.0.0.1."), nil},
		"IPv6":                        {name("::1"), nil},
		"IPv6 in brackets":            {name("[::1]"), nil},
		"decimal IPv4":                {name("2130706433"), nil},
		"trailing dot":                {name("api.example.org."), nil},
		"NUL at the end":              {name("api.example.org\x00"), nil},
		"a space":                     {name("api.example.org "), nil},
		"above ASCII":                 {name("b\xfccher.example"), nil},
		"a wildcard":                  {name("*.example.org"), nil},
		"a port":                      {name("api.example.org:443"), nil},
		"a path":                      {name("api.example.org/"), nil},
		"too long":                    {name(string(bytes.Repeat([]byte("a.example."), 40)) + "org"), nil},
	} {
		for _, r := range []io.Reader{bytes.NewReader(c.in), iotest.OneByteReader(bytes.NewReader(c.in))} {
			if got, _, err := Read(r, nil); err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%s: %q %v", what, got, err)
			}
		}
	}
}

// The outer name of a hello with ECH is known, and the hello is refused unless
// somebody allows it by that name.
func TestOuterName(t *testing.T) {
	for _, exts := range [][]ext{{sni("outer.example.org"), {extECH, []byte{0, 1}}}, {{extECH, nil}, sni("outer.example.org")}} {
		if name, _, err := Read(bytes.NewReader(records(message(exts...), 1<<14)), nil); name.String() != "outer.example.org" || !errors.Is(err, ErrECH) {
			t.Errorf("%q %v", name, err)
		}
	}
	if name, _, err := Read(bytes.NewReader(records(message(ext{extECH, nil}), 1<<14)), nil); !name.IsZero() || !errors.Is(err, ErrECH) {
		t.Errorf("%q %v", name, err)
	}
}

// FuzzCut: how a hello is cut into records changes nothing.
func FuzzCut(f *testing.F) {
	f.Add(message(sni("api.example.org")), 3, 50)
	f.Add(message(sni("a.example.org"), ext{extECH, nil}), 1, 2)
	f.Add(recorded(f, &tls.Config{ServerName: "api.example.org"})[5:], 4, 700)
	f.Fuzz(func(t *testing.T, msg []byte, a, b int) {
		if len(msg) < 5 || len(msg) > 8<<10 || msg[0] != typeClientHello {
			return
		}
		a = 1 + int(uint(a)%uint(len(msg)-2))
		b = a + 1 + int(uint(b)%uint(len(msg)-a))
		whole, _, err := Read(bytes.NewReader(records(msg, 1<<14)), nil)
		if errors.Is(err, io.ErrUnexpectedEOF) || len(msg) != 4+int(binary.BigEndian.Uint32(append([]byte{0}, msg[1:4]...))) {
			return // another length than it says
		}
		for _, in := range [][]byte{cut(msg, a), cut(msg, min(b, len(msg)-1)), records(msg, 1), records(msg, a)} {
			if name, _, err2 := Read(bytes.NewReader(in), nil); name != whole || (err == nil) != (err2 == nil) || errors.Is(err, ErrECH) != errors.Is(err2, ErrECH) {
				t.Fatalf("whole %q %v, cut %q %v", whole, err, name, err2)
			}
		}
	})
}

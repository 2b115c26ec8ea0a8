package tlshello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// recorded is the ClientHello that crypto/tls sends.
func recorded(t testing.TB, conf *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go tls.Client(client, conf).Handshake()
	defer client.Close()
	defer server.Close()
	_, b, err := Read(server, nil)
	if err != nil && !errors.Is(err, ErrNoName) {
		t.Fatal(err)
	}
	return b
}

// ext is one extension; build makes a ClientHello of extensions in one record.
type ext struct {
	kind uint16
	body []byte
}

func sni(names ...string) ext {
	var list []byte
	for _, n := range names {
		list = append(list, 0)
		list = binary.BigEndian.AppendUint16(list, uint16(len(n)))
		list = append(list, n...)
	}
	return ext{extServerName, append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)}
}

func message(exts ...ext) []byte {
	var e []byte
	for _, x := range exts {
		e = binary.BigEndian.AppendUint16(e, x.kind)
		e = binary.BigEndian.AppendUint16(e, uint16(len(x.body)))
		e = append(e, x.body...)
	}
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 0x01, 1, 0)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(e))), e...)
	return append([]byte{typeClientHello, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

func records(msg []byte, size int) (out []byte) {
	for part := range slices.Chunk(msg, size) {
		out = append(out, recordHandshake, 3, 1)
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
	}
	return out
}

func TestRead(t *testing.T) {
	padding := ext{21, make([]byte, 16000)}
	long := append([]ext{sni("api.example.org")}, padding)
	for _, c := range []struct {
		name string
		in   []byte
		want string
		err  error // nil with want "": any error
	}{
		{"crypto/tls", recorded(t, &tls.Config{ServerName: "api.example.org"}), "api.example.org", nil},
		{"crypto/tls without a name", recorded(t, &tls.Config{InsecureSkipVerify: true}), "", ErrNoName},
		{"upper case", records(message(sni("API.Example.ORG")), 1<<14), "api.example.org", nil},
		{"many records", records(message(long...), 700), "api.example.org", nil},
		{"one byte a record", records(message(sni("api.example.org")), 1), "api.example.org", nil},
		{"two names", records(message(sni("api.example.org", "evil.example.net")), 1<<14), "", nil},
		{"two extensions", records(message(sni("api.example.org"), sni("evil.example.net")), 1<<14), "", nil},
		{"no names", records(message(sni()), 1<<14), "", nil},
		{"empty name", records(message(sni("")), 1<<14), "", nil},
		{"trailing dot", records(message(sni("api.example.org.")), 1<<14), "", nil},
		{"address", records(message(sni("198.51.100.1")), 1<<14), "", nil},
		{"NUL", records(message(sni("api.example.org\x00.evil.net")), 1<<14), "", nil},
		{"ECH", records(message(sni("api.example.org"), ext{extECH, []byte{0}}), 1<<14), "", ErrECH},
		{"HTTP", []byte("GET / HTTP/1.1\r\n"), "", ErrNotTLS},
		{"SSLv2", []byte{0x80, 0x2e, 1, 3, 1}, "", ErrNotTLS},
		{"an alert", []byte{21, 3, 3, 0, 2, 2, 40}, "", ErrNotTLS},
		{"another message", []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, "", nil},
		{"an empty record", []byte{22, 3, 1, 0, 0}, "", nil},
		{"a record too large", []byte{22, 3, 1, 0x50, 0}, "", nil},
		{"a message too large", []byte{22, 3, 1, 0, 4, 1, 2, 0, 0}, "", nil},
		{"bytes behind the message", records(append(message(sni("a.example.org")), 0), 1<<14), "", nil},
		{"half", records(message(sni("api.example.org")), 1<<14)[:40], "", io.ErrUnexpectedEOF},
		{"nothing", nil, "", io.EOF},
	} {
		for _, split := range []string{"whole", "one byte at a time"} {
			var r io.Reader = bytes.NewReader(c.in)
			if split != "whole" {
				r = iotest.OneByteReader(r)
			}
			name, read, err := Read(r, make([]byte, 0, 64))
			switch {
			case c.want != "" && (err != nil || name.String() != c.want || !bytes.Equal(read, c.in)):
				t.Errorf("%s (%s) = %q, %d bytes, %v; want %q, %d bytes", c.name, split, name, len(read), err, c.want, len(c.in))
			case c.want == "" && (err == nil || c.err != nil && !errors.Is(err, c.err)):
				t.Errorf("%s (%s) = %q, %v; want error %v", c.name, split, name, err, c.err)
			case !bytes.HasPrefix(c.in, read):
				t.Errorf("%s (%s): the bytes read are not those that were sent", c.name, split)
			}
		}
	}
}

// What the client sends behind its hello is returned too.
func TestReadReturnsEverything(t *testing.T) {
	in := append(records(message(sni("api.example.org")), 1<<14), "early data"...)
	name, read, err := Read(bytes.NewReader(in), make([]byte, 0, 4096))
	if err != nil || name.String() != "api.example.org" || !bytes.Equal(read, in) {
		t.Errorf("%q %q %v", name, read, err)
	}
}

func TestReadIsBounded(t *testing.T) {
	endless := io.MultiReader(bytes.NewReader([]byte{22, 3, 1, 0, 4, 1, 0, 0xff, 0}), repeat{records(make([]byte, 100), 100)})
	if _, read, err := Read(endless, nil); err == nil || len(read) > MaxBytes {
		t.Errorf("%d bytes, %v", len(read), err)
	}
}

type repeat struct{ b []byte }

func (r repeat) Read(b []byte) (int, error) { return copy(b, r.b), nil }

// FuzzRead: no panic, bounded, and what is accepted is what crypto/tls sees: a
// server must never be asked for another name than the one that was decided on.
func FuzzRead(f *testing.F) {
	f.Add(recorded(f, &tls.Config{ServerName: "api.example.org"}))
	f.Add(records(message(sni("api.example.org"), ext{extECH, nil}), 50))
	f.Add(records(message(sni("a.example.org", "b.example.org")), 1<<14))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		name, read, err := Read(bytes.NewReader(in), nil)
		if len(read) > MaxBytes || !bytes.HasPrefix(in, read) {
			t.Fatalf("%d bytes read", len(read))
		}
		if err != nil {
			return
		}
		seen := ""
		tls.Server(conn{bytes.NewReader(in)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = h.ServerName
			return nil, io.EOF
		}}).Handshake()
		if seen != "" && !strings.EqualFold(seen, name.String()) {
			t.Fatalf("we say %q, crypto/tls says %q", name, seen)
		}
	})
}

// conn is a connection to read from alone.
type conn struct{ io.Reader }

func (conn) LocalAddr() net.Addr              { return nil }
func (conn) RemoteAddr() net.Addr             { return nil }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }
func (conn) Write(b []byte) (int, error)      { return len(b), nil }
func (conn) Close() error                     { return nil }

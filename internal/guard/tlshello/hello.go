// Package tlshello reads the server name from the ClientHello of a TLS connection,
// and makes sure that it is the only one.
//
// It accepts less than a TLS server would, on purpose: a hello that two parsers
// could read differently is refused (B24).
package tlshello

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/llmdo/workshop/firewall"
)

// MaxBytes bounds the size of a ClientHello. Key shares of post-quantum algorithms
// make hellos of some kilobytes.
const MaxBytes = 64 << 10

// The errors that callers distinguish. All others mean a malformed hello.
var (
	ErrNotTLS = errors.New("not TLS") // at its beginning: a server may still find a hello after that
	ErrNoName = errors.New("the ClientHello has no server name")
	ErrECH    = errors.New("the ClientHello is encrypted (ECH)")
	errBad    = errors.New("malformed ClientHello")
	errLarge  = errors.New("the ClientHello is too large")
)

// Numbers of RFC 8446 §4, §5.1, RFC 6066 §3 and RFC 9849 (ECH).
const (
	recordHandshake = 22
	typeClientHello = 1
	extServerName   = 0
	extECH          = 0xfe0d
	maxRecord       = 1 << 14
)

// Read reads from r until the ClientHello is complete, in any number of segments
// and records. It returns the server name and, also with an error, all bytes read,
// which belong to the upstream. The caller sets a deadline on r.
func Read(r io.Reader, buf []byte) (firewall.Name, []byte, error) {
	buf = buf[:0]
	var s scanner
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), MaxBytes)])
		buf = buf[:len(buf)+n]
		msg, done, serr := s.scan(buf)
		if serr != nil {
			return firewall.Name{}, buf, serr
		}
		if done {
			name, perr := parse(msg)
			return name, buf, perr
		}
		if len(buf) >= MaxBytes {
			return firewall.Name{}, buf, errLarge
		}
		if err != nil {
			if err == io.EOF && len(buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return firewall.Name{}, buf, err
		}
	}
}

// scanner assembles the handshake message from records.
type scanner struct {
	at  int // start of the first record not consumed yet
	msg []byte
}

// scan consumes the complete records of b, which holds the same bytes and more at each call.
func (s *scanner) scan(b []byte) (msg []byte, done bool, err error) {
	for {
		rest := b[s.at:]
		if len(rest) > 0 && rest[0] != recordHandshake {
			return nil, false, ErrNotTLS
		}
		// A record's minor version says nothing: servers ignore it (RFC 8446
		// §5.1).
		if len(rest) > 1 && rest[1] != 3 {
			return nil, false, ErrNotTLS
		}
		if len(rest) < 5 {
			return nil, false, nil
		}
		n := int(binary.BigEndian.Uint16(rest[3:]))
		if n == 0 || n > maxRecord {
			return nil, false, errBad
		}
		// An incomplete last record is checked early, to not wait for the
		// rest of garbage.
		if s.at == 0 && len(rest) > 5 && rest[5] != typeClientHello {
			return nil, false, errBad
		}
		if len(rest) < 5+n {
			return nil, false, nil
		}
		s.msg = append(s.msg, rest[5:5+n]...)
		s.at += 5 + n
		if len(s.msg) < 4 {
			continue
		}
		size := 4 + int(s.msg[1])<<16 + int(s.msg[2])<<8 + int(s.msg[3])
		switch {
		case size > MaxBytes:
			return nil, false, errLarge
		case len(s.msg) > size:
			return nil, false, errBad // a second message before the server's answer
		case len(s.msg) == size:
			return s.msg[4:], true, nil
		}
	}
}

// reader reads length-prefixed vectors; after an error everything is empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint8() int {
	if v := r.take(1); v != nil {
		return int(v[0])
	}
	return 0
}

func (r *reader) uint16() int {
	if v := r.take(2); v != nil {
		return int(binary.BigEndian.Uint16(v))
	}
	return 0
}

// parse parses the body of a ClientHello (RFC 8446 §4.1.2).
func parse(msg []byte) (firewall.Name, error) {
	r := reader{b: msg}
	r.take(2 + 32)    // version, random
	r.take(r.uint8()) // session id
	if n := r.uint16(); n == 0 || n%2 != 0 {
		return firewall.Name{}, errBad
	} else {
		r.take(n) // cipher suites
	}
	if n := r.uint8(); n == 0 {
		return firewall.Name{}, errBad
	} else {
		r.take(n) // compression methods
	}
	if r.bad {
		return firewall.Name{}, errBad
	}
	if len(r.b) == 0 {
		return firewall.Name{}, ErrNoName // no extensions at all
	}
	ext := reader{b: r.take(r.uint16())}
	if r.bad || len(r.b) != 0 {
		return firewall.Name{}, errBad
	}
	var name firewall.Name
	var named, ech bool
	seen := map[int]bool{}
	for len(ext.b) > 0 {
		kind := ext.uint16()
		body := ext.take(ext.uint16())
		if ext.bad || seen[kind] { // RFC 8446 §4.2: each extension once
			return firewall.Name{}, errBad
		}
		seen[kind] = true
		switch kind {
		case extECH:
			ech = true
		case extServerName:
			var err error
			if name, err = serverName(body); err != nil {
				return firewall.Name{}, err
			}
			named = true
		}
	}
	switch {
	case ech:
		return name, ErrECH
	case !named:
		return firewall.Name{}, ErrNoName
	}
	return name, nil
}

// serverName parses the extension: a list of exactly one host_name.
func serverName(b []byte) (firewall.Name, error) {
	r := reader{b: b}
	list := reader{b: r.take(r.uint16())}
	if r.bad || len(r.b) != 0 {
		return firewall.Name{}, errBad
	}
	kind := list.uint8()
	host := list.take(list.uint16())
	if list.bad || kind != 0 || len(list.b) != 0 {
		return firewall.Name{}, errBad
	}
	return firewall.ParseName(string(host))
}

package carrier

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier/mux"
)

// Kind is the first byte of a head or a message.
type Kind byte

// The kinds.
const (
	TCP Kind = 1 + iota
	DNS
	Refused
	Ready
	Inbound
	Session
	Ports
	Output
)

// MaxStreams is how many streams of each side there may be at a time.
const MaxStreams = 1024

// MaxDNS bounds a query and a response, in bytes: longer ones go by TCP.
const MaxDNS = 4096

// MaxPorts is how many ports a relay accepts connections at besides its own: those of the
// policy and of endpoints.
const MaxPorts = firewall.MaxCarriedPorts + firewall.MaxEndpoints

// MaxLine bounds the text of [Output], in bytes.
const MaxLine = mux.MaxMessage - 2

// Stream is where a line was written.
type Stream byte

// The streams.
const (
	Stdout Stream = 1 + iota
	Stderr
)

// Head is a decoded head or message.
type Head struct {
	Kind     Kind
	Address  netip.AddrPort // TCP, Refused: without a zone, IPv4 as such
	Protocol byte           // Refused: of the IP header
	Port     uint16         // Inbound, not 0
	Ports    []uint16       // Ports: rising, not 0
	Stream   Stream         // Output
	Line     string         // Output: UTF-8 without a newline, MaxLine bytes at most
	// Source is from where a worker dials: TCP over IPv4, DNS. Invalid: from 127.0.0.1.
	Source netip.Addr
}

// Loopback is the source of what is dialled without one.
var Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// SourceOf returns the source of a head for the address of a program inside: addresses of the
// loopback alone are what a room has, too.
func SourceOf(from netip.Addr) netip.Addr {
	if from = from.Unmap(); from.Is4() && from.IsLoopback() && from != Loopback {
		return from
	}
	return netip.Addr{}
}

// Encode returns the bytes of the head.
func (h Head) Encode() []byte {
	b := []byte{byte(h.Kind)}
	switch h.Kind {
	case Refused:
		b = append(b, h.Protocol)
		fallthrough
	case TCP:
		b = append(b, h.Address.Addr().AsSlice()...)
		b = binary.BigEndian.AppendUint16(b, h.Address.Port())
		b = append(b, h.Source.AsSlice()...)
	case DNS:
		b = append(b, h.Source.AsSlice()...)
	case Inbound:
		b = binary.BigEndian.AppendUint16(b, h.Port)
	case Ports:
		for _, p := range h.Ports {
			b = binary.BigEndian.AppendUint16(b, p)
		}
	case Output:
		b = append(append(b, byte(h.Stream)), h.Line...)
	}
	return b
}

// Decode decodes a head of a stream or a message. It accepts only what [Head.Encode]
// returns for a valid one.
func Decode(b []byte) (h Head, err error) {
	bad := fmt.Errorf("%w: a head of %d bytes", mux.ErrProtocol, len(b))
	if len(b) == 0 {
		return h, bad
	}
	h.Kind, b = Kind(b[0]), b[1:]
	switch h.Kind {
	case Refused:
		if len(b) == 0 {
			return h, bad
		}
		h.Protocol, b = b[0], b[1:]
		fallthrough
	case TCP:
		if h.Kind == TCP && len(b) == 4+2+4 {
			if h.Source = SourceOf(netip.AddrFrom4([4]byte(b[6:]))); !h.Source.IsValid() {
				return h, bad
			}
			b = b[:6]
		}
		if len(b) != 4+2 && len(b) != 16+2 {
			return h, bad
		}
		a, _ := netip.AddrFromSlice(b[:len(b)-2])
		if a.Is4In6() {
			return h, bad
		}
		h.Address = netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[len(b)-2:]))
	case Inbound:
		if len(b) != 2 || b[0]|b[1] == 0 {
			return h, bad
		}
		h.Port = binary.BigEndian.Uint16(b)
	case Ports:
		if len(b)%2 != 0 || len(b) > 2*MaxPorts {
			return h, bad
		}
		for ; len(b) > 0; b = b[2:] {
			p := binary.BigEndian.Uint16(b)
			if n := len(h.Ports); p == 0 || n > 0 && h.Ports[n-1] >= p {
				return h, bad
			}
			h.Ports = append(h.Ports, p)
		}
	case Output:
		if len(b) == 0 || len(b) > 1+MaxLine {
			return h, bad
		}
		h.Stream, h.Line = Stream(b[0]), string(b[1:])
		if h.Stream != Stdout && h.Stream != Stderr || strings.Contains(h.Line, "\n") || !utf8.ValidString(h.Line) {
			return h, bad
		}
	case DNS:
		if len(b) == 4 {
			h.Source = SourceOf(netip.AddrFrom4([4]byte(b)))
		}
		if len(b) != 0 && !h.Source.IsValid() {
			return h, bad
		}
	case Ready, Session:
		if len(b) != 0 {
			return h, bad
		}
	default:
		return h, fmt.Errorf("%w: kind %d", mux.ErrProtocol, h.Kind)
	}
	return h, nil
}

// ErrWay is a kind that goes the other way only.
var ErrWay = fmt.Errorf("%w: a kind that only the other side sends", mux.ErrProtocol)

// DecodeOf is [Decode] for a side that gets only these kinds.
func DecodeOf(b []byte, kinds ...Kind) (Head, error) {
	h, err := Decode(b)
	if err == nil && !slices.Contains(kinds, h.Kind) {
		err = ErrWay
	}
	return h, err
}

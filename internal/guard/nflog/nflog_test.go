package nflog

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// logged is a message as the kernel sends it.
func logged(seq uint32, ip []byte) []byte {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.Uint32(attrSeq, seq)
	e.Uint32(attrUID, 1000)
	e.Bytes(attrPayload, ip)
	attributes, err := e.Encode()
	if err != nil {
		panic(err)
	}
	body := append([]byte{unix.AF_INET, 0, 0, 100}, attributes...) // struct nfgenmsg
	m := netlink.Message{Header: netlink.Header{Type: typePacket, Length: uint32(unix.SizeofNlMsghdr + len(body))}, Data: body}
	b, err := m.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return b
}

var udp4 = []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 198, 51, 100, 9, 0x80, 0, 0x13, 0x88, 0, 8, 0, 0}

type messages [][]byte

func (m *messages) Read(b []byte) (int, error) {
	if len(*m) == 0 {
		return 0, io.EOF
	}
	next := (*m)[0]
	*m = (*m)[1:]
	if next == nil {
		return 0, unix.ENOBUFS
	}
	return copy(b, next), nil
}

func TestReadCountsWhatTheKernelLost(t *testing.T) {
	m := &messages{logged(0, udp4), logged(1, udp4), nil, logged(7, udp4)}
	var got []Packet
	lost := uint64(0)
	Read(m, func(p Packet) { got = append(got, p) }, func(n uint64) { lost += n })
	if len(got) != 3 || lost != 5 {
		t.Fatalf("%d packets, %d lost", len(got), lost)
	}
	if p := got[0]; p.Dst.String() != "198.51.100.9" || p.Port != 5000 || p.Protocol != "udp" || !p.HasUID || p.UID != 1000 {
		t.Errorf("%+v", p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(logged(3, udp4))
	f.Add(append(logged(3, udp4), logged(4, udp4[:20])...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range parse(b) {
			if !p.Dst.IsValid() || p.Protocol == "" {
				t.Fatalf("%+v", p)
			}
		}
	})
}

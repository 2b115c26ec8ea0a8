package nflog

import (
	"encoding/binary"
	"os"
	"sync/atomic"
	"testing"
	"time"

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

// socket is one end of a socket of datagrams, as the kernel's is, with the sequence
// of sent ones.
func socket(t *testing.T, sent ...[]byte) (*os.File, func(...[]byte)) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "log")
	t.Cleanup(func() { f.Close() })
	send := func(more ...[]byte) {
		for _, b := range more {
			if _, err := unix.Write(fds[1], b); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(sent...)
	t.Cleanup(func() { unix.Close(fds[1]) })
	return f, send
}

func TestReadCountsWhatTheKernelLost(t *testing.T) {
	f, _ := socket(t, logged(0, udp4), logged(1, udp4), logged(7, udp4))
	var got []Packet
	lost := uint64(0)
	l, err := New(f, func(p Packet) { got = append(got, p) }, func(n uint64) { lost += n })
	if err != nil {
		t.Fatal(err)
	}
	l.Drain()
	if len(got) != 3 || lost != 5 {
		t.Fatalf("%d packets, %d lost", len(got), lost)
	}
	if p := got[0]; p.Dst.String() != "198.51.100.9" || p.Port != 5000 || p.Protocol != "udp" || !p.HasUID || p.UID != 1000 {
		t.Errorf("%+v", p)
	}
}

// What the socket has when Drain is called was reported when it returns, also if
// another goroutine has just read it.
func TestDrain(t *testing.T) {
	f, send := socket(t)
	var got atomic.Int64
	l, err := New(f, func(Packet) { time.Sleep(time.Millisecond); got.Add(1) }, func(n uint64) { t.Errorf("%d lost", n) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); l.Read() }()
	for n := range 200 {
		send(logged(uint32(n), udp4))
		if l.Drain(); got.Load() != int64(n)+1 {
			t.Fatalf("%d packets are reported, want %d", got.Load(), n+1)
		}
	}
	f.Close()
	<-ended
	l.Drain()
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

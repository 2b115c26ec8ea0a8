// Package nflog reads the packets that a room's own rules refused, which netfilter
// copies to its log group (NFLOG).
package nflog

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Packet is the head of a refused packet.
type Packet struct {
	Src      netip.AddrPort // the port is 0 if the protocol has none
	Dst      netip.Addr
	Port     uint16 // 0 if the protocol has none
	Protocol string // tcp, udp, icmp, or ip with the number of linux/in.h
	UID      uint32 // of the sender, in its user namespace
	HasUID   bool
	// Seq is the kernel's count of packets logged to this socket; gaps are
	// packets that didn't fit into its buffer.
	Seq    uint32
	HasSeq bool
}

// Numbers of linux/netfilter/nfnetlink.h and nfnetlink_log.h.
const (
	typePacket     = unix.NFNL_SUBSYS_ULOG << 8 // NFULNL_MSG_PACKET
	sizeofNfgenmsg = 4                          // struct nfgenmsg
	attrPayload    = 9                          // NFULA_PAYLOAD
	attrUID        = 11                         // NFULA_UID
	attrSeq        = 12                         // NFULA_SEQ
)

// Log reads a socket with the packets that a room refused. It calls packet for each,
// and lost when packets didn't fit into the socket's buffer, with their number if it
// is known (else 0): never two at a time.
type Log struct {
	conn   syscall.RawConn
	take   func(b []byte)              // reports what was read
	failed func(fd uintptr, err error) // reports what may be lost

	mu  sync.Mutex // held from the read of a packet until it was reported
	buf []byte
}

// New reads the socket of a room's log group.
func New(f syscall.Conn, packet func(Packet), lost func(n uint64)) (*Log, error) {
	var next uint32
	known := false
	return newLog(f, 64<<10, func(b []byte) {
		for _, p := range parse(b) {
			if p.HasSeq {
				if known && p.Seq != next {
					lost(uint64(p.Seq - next))
				}
				next, known = p.Seq+1, true
			}
			packet(p)
		}
	}, func(_ uintptr, err error) {
		if errors.Is(err, unix.ENOBUFS) && !known {
			lost(0) // else it is counted by the gap in the sequence
		}
	})
}

func newLog(f syscall.Conn, size int, take func([]byte), failed func(uintptr, error)) (*Log, error) {
	conn, err := f.SyscallConn()
	return &Log{conn: conn, take: take, failed: failed, buf: make([]byte, size)}, err
}

// Read reads until the socket is closed.
func (l *Log) Read() {
	var err error
	for err == nil {
		closed := l.conn.Read(func(fd uintptr) bool {
			err = l.next(fd)
			return !errors.Is(err, unix.EAGAIN)
		})
		if err == nil {
			err = closed
		}
	}
}

// Drain reads what the socket has received by now. When it returns, all of it has
// been reported.
func (l *Log) Drain() {
	_ = l.conn.Control(func(fd uintptr) {
		for l.next(fd) == nil {
		}
	})
}

// next reads one datagram, and reports it. It returns EAGAIN when there is none.
func (l *Log) next(fd uintptr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _, err := unix.Recvfrom(int(fd), l.buf, unix.MSG_DONTWAIT)
	switch {
	case err == nil && n == 0:
		return io.EOF
	case err == nil:
		l.take(l.buf[:n])
		return nil
	}
	l.failed(fd, err)
	switch {
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.EINTR):
		return nil
	}
	return err
}

// parse parses the netlink messages of one datagram. It skips everything but logged
// packets.
func parse(b []byte) []Packet {
	messages, _ := syscall.ParseNetlinkMessage(b)
	var out []Packet
	for _, m := range messages {
		if m.Header.Type != typePacket || len(m.Data) < sizeofNfgenmsg {
			continue
		}
		if p, ok := attributes(m.Data[sizeofNfgenmsg:]); ok {
			out = append(out, p)
		}
	}
	return out
}

func attributes(b []byte) (p Packet, ok bool) {
	d, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return p, false
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		switch d.Type() {
		case attrPayload:
			ok = p.payload(d.Bytes())
		case attrUID:
			p.UID, p.HasUID = d.Uint32(), true
		case attrSeq:
			p.Seq, p.HasSeq = d.Uint32(), true
		}
	}
	return p, ok && d.Err() == nil
}

// payload parses the IP header and the ports after it.
func (p *Packet) payload(b []byte) bool {
	var proto byte
	var rest []byte
	var src netip.Addr
	var from uint16
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		head := int(b[0]&15) * 4
		if head < 20 || head > len(b) {
			return false
		}
		proto, src, p.Dst, rest = b[9], netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[head:]
	case len(b) >= 40 && b[0]>>4 == 6:
		proto, src, p.Dst, rest = b[6], netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])), b[40:]
	default:
		return false
	}
	switch proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		if len(rest) >= 4 {
			from, p.Port = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
		}
	}
	p.Src = netip.AddrPortFrom(src, from)
	p.Protocol = protocolName(proto)
	return true
}

func protocolName(n byte) string {
	switch n {
	case unix.IPPROTO_TCP:
		return "tcp"
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		return "icmp"
	case unix.IPPROTO_SCTP:
		return "sctp"
	}
	return "ip" + strconv.Itoa(int(n))
}

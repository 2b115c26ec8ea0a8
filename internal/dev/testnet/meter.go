package testnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// meter is the AF_PACKET socket (packet(7)) that sees every IP packet that
// comes in over the link, below all servers.
type meter struct {
	in  *Internet
	raw syscall.RawConn
	mu  sync.Mutex // one reads at a time
	buf [128]byte
}

// startMeter counts what comes in from now on. What has arrived is counted
// when the counts are read: the kernel queues a packet here before any server
// has it, so an answer never comes ahead of its count.
func (in *Internet) startMeter() error {
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // htons
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
	if err != nil {
		return fmt.Errorf("meter: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	f := os.NewFile(uintptr(fd), "meter")
	in.onClose(func() { f.Close() })
	m := &meter{in: in}
	if m.raw, err = f.SyscallConn(); err != nil {
		return fmt.Errorf("meter: %w", err)
	}
	in.meter = m
	// So that the socket's buffer never fills.
	go m.raw.Read(func(fd uintptr) bool { m.drain(int(fd)); return false })
	return nil
}

// settle counts what has arrived by now.
func (in *Internet) settle() {
	if m := in.meter; m != nil {
		_ = m.raw.Control(func(fd uintptr) { m.drain(int(fd)) })
	}
}

func (m *meter) drain(fd int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		n, err := unix.Read(fd, m.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		for _, key := range packetKeys(m.buf[:n]) {
			m.in.count.packet(key)
		}
	}
}

// packetKeys names a packet for the counters: "udp 198.51.100.9:5000" and, for
// all ports together, "udp 198.51.100.9".
func packetKeys(p []byte) []string {
	var proto byte
	var dst netip.Addr
	var rest []byte
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		ihl := int(p[0]&15) * 4
		if len(p) < ihl {
			return nil
		}
		proto, dst, rest = p[9], netip.AddrFrom4([4]byte(p[16:20])), p[ihl:]
	case len(p) >= 40 && p[0]>>4 == 6:
		proto, dst, rest = p[6], netip.AddrFrom16([16]byte(p[24:40])), p[40:]
	default:
		return nil
	}
	if !Range4.Contains(dst) && !Range6.Contains(dst) {
		return nil
	}
	name := map[byte]string{1: "icmp", 58: "icmp", 6: "tcp", 17: "udp"}[proto]
	switch name {
	case "":
		return []string{fmt.Sprintf("ip%d %s", proto, dst)}
	case "icmp":
		return []string{"icmp " + dst.String()}
	}
	if len(rest) < 4 {
		return []string{name + " " + dst.String()}
	}
	port := binary.BigEndian.Uint16(rest[2:4])
	return []string{name + " " + dst.String(), name + " " + netip.AddrPortFrom(dst, port).String()}
}

package testnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// startMeter counts every IP packet that comes in over the link, below all
// servers, by an AF_PACKET socket (packet(7)).
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
	go func() {
		buf := make([]byte, 128)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			for _, key := range packetKeys(buf[:n]) {
				in.count.packet(key)
			}
		}
	}()
	return nil
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

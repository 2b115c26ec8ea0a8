package carrier

import (
	"fmt"
	"io"
	"net"
	"time"
)

// PortsSocket is the abstract unix socket of a room, bound to its network namespace, at
// which its outlet is told the ports of the policy: [WritePorts], again with each change.
const PortsSocket = "@workshop/ports"

// WritePorts writes a list of ports: a message of kind [Ports] after its length, in
// 2 bytes, big-endian. A peer that doesn't read within a second is an error.
func WritePorts(c net.Conn, ports []uint16) error {
	b := Head{Kind: Ports, Ports: ports}.Encode()
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := c.Write(append([]byte{byte(len(b) >> 8), byte(len(b))}, b...))
	return err
}

// ReadPorts reads what [WritePorts] wrote.
func ReadPorts(r io.Reader) ([]uint16, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(length[0])<<8 | int(length[1])
	if n > 1+2*MaxPorts {
		return nil, fmt.Errorf("a list of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	h, err := DecodeOf(b, Ports)
	return h.Ports, err
}

package vhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// Requests of the hypervisor, VHOST_USER_* in vhost-user.rst. The features that are
// offered here need no others.
const (
	getFeatures         = 1
	setFeatures         = 2
	setOwner            = 3
	resetOwner          = 4
	setMemTable         = 5
	setVringNum         = 8
	setVringAddr        = 9
	setVringBase        = 10
	getVringBase        = 11
	setVringKick        = 12
	setVringCall        = 13
	setVringErr         = 14
	getProtocolFeatures = 15
	setProtocolFeatures = 16
	getQueueNum         = 17
	setVringEnable      = 18
)

// Features: of virtio 1.2, section 6, and of vhost-user.
const (
	indirectDesc     = 1 << 28
	protocolFeatures = 1 << 30
	version1         = 1 << 32
	offered          = indirectDesc | protocolFeatures | version1

	multiQueue      = 1 << 0
	replyAck        = 1 << 3
	offeredProtocol = multiQueue | replyAck
)

// Flags of a message: the version in the lowest two bits.
const (
	version   = 1
	isReply   = 1 << 2
	needReply = 1 << 3
)

const (
	headSize   = 12
	regionSize = 32
	maxPayload = 8 + maxRegions*regionSize
)

// message is one request of the hypervisor.
type message struct {
	request, flags uint32
	payload        []byte
	fds            []int // owned by whoever takes one, which sets it to -1
}

// u64 is a payload of one number.
func (m *message) u64() (uint64, error) {
	if len(m.payload) != 8 {
		return 0, fmt.Errorf("it has %d bytes, want 8", len(m.payload))
	}
	return binary.LittleEndian.Uint64(m.payload), nil
}

// state is a payload of a queue and a number.
func (m *message) state() (queue, n uint32, err error) {
	v, err := m.u64()
	return uint32(v), uint32(v >> 32), err
}

// take hands over a descriptor.
func (m *message) take(i int) int {
	fd := m.fds[i]
	m.fds[i] = -1
	return fd
}

func (m *message) close() {
	for _, fd := range m.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// receive reads one message. The caller closes it, also with an error.
func receive(conn *net.UnixConn) (m *message, err error) {
	m = &message{}
	var head [headSize]byte
	oob := make([]byte, unix.CmsgSpace(4*maxRegions))
	n, oobn, flags, _, err := conn.ReadMsgUnix(head[:], oob)
	if err != nil {
		return m, err
	}
	if m.fds, err = descriptors(oob[:oobn]); err != nil {
		return m, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return m, fmt.Errorf("a message has more than %d descriptors", maxRegions)
	}
	if _, err := io.ReadFull(conn, head[n:]); err != nil {
		return m, err
	}
	m.request, m.flags = binary.LittleEndian.Uint32(head[0:]), binary.LittleEndian.Uint32(head[4:])
	size := binary.LittleEndian.Uint32(head[8:])
	if m.flags&^needReply != version || size > maxPayload {
		return m, fmt.Errorf("message %d has flags %#x and %d bytes", m.request, m.flags, size)
	}
	m.payload = make([]byte, size)
	_, err = io.ReadFull(conn, m.payload)
	return m, err
}

// descriptors returns all that a control message has, so that they can be closed.
func descriptors(oob []byte) (fds []int, err error) {
	controls, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, c := range controls {
		some, err := unix.ParseUnixRights(&c)
		if err != nil {
			return fds, errors.New("a control message has no descriptors")
		}
		fds = append(fds, some...)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

// reply answers a message.
func reply(conn *net.UnixConn, request uint32, payload []byte) error {
	b := binary.LittleEndian.AppendUint32(nil, request)
	b = binary.LittleEndian.AppendUint32(b, version|isReply)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	_, err := conn.Write(append(b, payload...))
	return err
}

package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// batch is a buffer of netlink messages (netlink(7)); numbers in headers are
// in the machine's order, those inside nf_tables attributes in network order.
type batch struct {
	buf   []byte
	seq   uint32
	label []string // what each message is about, by sequence number from 1
	start int      // of the open message
}

// begin opens a message; what says what it is about if the kernel refuses it.
func (b *batch) begin(typ, flags uint16, what string) {
	b.end()
	b.seq++
	b.label = append(b.label, what)
	b.start = len(b.buf)
	b.buf = binary.NativeEndian.AppendUint32(b.buf, 0) // length, set by end
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = binary.NativeEndian.AppendUint16(b.buf, flags|unix.NLM_F_REQUEST)
	b.buf = binary.NativeEndian.AppendUint32(b.buf, b.seq)
	b.buf = binary.NativeEndian.AppendUint32(b.buf, 0) // port: the kernel's choice
}

// end completes the open message, if there is one.
func (b *batch) end() {
	if len(b.buf) > b.start {
		binary.NativeEndian.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
		b.start = len(b.buf)
	}
}

// acknowledge asks the kernel to confirm the open message.
func (b *batch) acknowledge() {
	flags := b.buf[b.start+6:]
	binary.NativeEndian.PutUint16(flags, binary.NativeEndian.Uint16(flags)|unix.NLM_F_ACK)
}

func (b *batch) raw(data ...byte) { b.buf = append(b.buf, data...) }

// attr appends an attribute, padded to four bytes.
func (b *batch) attr(typ uint16, data []byte) {
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(4+len(data)))
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = append(b.buf, data...)
	b.pad()
}

func (b *batch) text(typ uint16, s string) { b.attr(typ, append([]byte(s), 0)) }

func (b *batch) be32(typ uint16, v uint32) {
	b.attr(typ, binary.BigEndian.AppendUint32(nil, v))
}

// nest appends an attribute whose content f writes.
func (b *batch) nest(typ uint16, f func()) {
	at := len(b.buf)
	b.buf = append(b.buf, 0, 0, 0, 0)
	f()
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
	binary.NativeEndian.PutUint16(b.buf[at+2:], typ|unix.NLA_F_NESTED)
	b.pad()
}

func (b *batch) pad() {
	for len(b.buf)%4 != 0 {
		b.buf = append(b.buf, 0)
	}
}

// netlinkTimeout bounds the wait for an answer of the kernel, which comes
// within the call that sends the question.
const netlinkTimeout = 10 * time.Second

// netlinkSocket opens a blocking socket of a netlink family.
func netlinkSocket(family int) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return -1, fmt.Errorf("netlink socket: %w", err)
	}
	tv := unix.NsecToTimeval(netlinkTimeout.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("netlink socket: %w", err)
	}
	// The default is small for a long list of ports; not being allowed to
	// raise it shows, if at all, as an error of the transaction.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
	return fd, nil
}

// errno is the kernel's refusal of one message.
type errno struct {
	what string
	err  unix.Errno
}

func (e *errno) Error() string { return e.what + ": " + e.err.Error() }
func (e *errno) Unwrap() error { return e.err }

// send carries out the messages on a socket: each answer that is not a
// confirmation goes to f, which may be nil. It returns when the last message
// has been confirmed or at the first refusal, after which the socket must be
// closed: more answers may follow.
func (b *batch) send(fd int, f func(typ uint16, body []byte) error) error {
	b.end()
	if err := unix.Sendto(fd, b.buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink: send %d bytes: %w", len(b.buf), err)
	}
	buf := make([]byte, 64<<10)
	for {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("netlink: no answer: %w", err)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not from the kernel
		}
		done, err := b.answers(buf[:n], f)
		if done || err != nil {
			return err
		}
	}
}

var errShort = errors.New("netlink: the kernel's answer is too short")

// answers looks at one datagram of answers; done is true when the last message
// was confirmed or a dump has ended.
func (b *batch) answers(data []byte, f func(uint16, []byte) error) (done bool, err error) {
	for len(data) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(data))
		typ := binary.NativeEndian.Uint16(data[4:])
		seq := binary.NativeEndian.Uint32(data[8:])
		if size < unix.NLMSG_HDRLEN || size > len(data) {
			return false, errShort
		}
		body := data[unix.NLMSG_HDRLEN:size]
		data = data[min((size+3)&^3, len(data)):]
		switch typ {
		case unix.NLMSG_ERROR, unix.NLMSG_DONE:
			if len(body) < 4 {
				return false, errShort
			}
			if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
				return false, &errno{b.what(seq), unix.Errno(-code)}
			}
			if seq == b.seq {
				return true, nil
			}
		default:
			if f != nil {
				if err := f(typ, body); err != nil {
					return false, err
				}
			}
		}
	}
	return false, nil
}

func (b *batch) what(seq uint32) string {
	if seq == 0 || int(seq) > len(b.label) {
		return "netlink"
	}
	return b.label[seq-1]
}

// attributes calls f for each attribute of data until f returns false.
func attributes(data []byte, f func(typ uint16, value []byte) bool) {
	for len(data) >= 4 {
		size := int(binary.NativeEndian.Uint16(data))
		typ := binary.NativeEndian.Uint16(data[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		if size < 4 || size > len(data) {
			return
		}
		if !f(typ, data[4:size]) {
			return
		}
		data = data[min((size+3)&^3, len(data)):]
	}
}

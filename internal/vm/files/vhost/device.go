package vhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// queues of the device: that of urgent requests, which only forget nodes, and one of others.
const (
	urgent = 0
	queues = 2
)

// device is one virtio-fs device. Its fields are changed by the goroutine of Serve alone,
// and its memory only while no request touches it.
type device struct {
	conn    *net.UnixConn
	handler Handler
	buffers *Buffers

	queue [queues]*queue
	acks  bool

	mapped sync.RWMutex // read-locked while the guest's memory is touched
	memory memory

	once sync.Once
	err  error // why the session ended, if not by the hypervisor
}

// Serve is a device until the hypervisor closes the connection, which is no error.
// Every breach of the protocol is one. When it returns, no request is being handled.
func Serve(conn *net.UnixConn, buffers *Buffers, handler Handler) error {
	d := &device{conn: conn, handler: handler, buffers: buffers}
	for i := range d.queue {
		d.queue[i] = &queue{dev: d, call: -1, enabled: true}
	}
	err := d.messages()
	conn.Close()
	for _, q := range d.queue {
		q.stop()
		q.close()
	}
	d.memory.unmap()
	d.once.Do(func() {})
	return errors.Join(d.err, err)
}

// fail ends the session.
func (d *device) fail(err error) {
	d.once.Do(func() {
		d.err = err
		d.conn.Close()
	})
}

func (d *device) messages() error {
	for {
		m, err := receive(d.conn)
		if err == nil {
			err = d.message(m)
			if err != nil {
				err = fmt.Errorf("message %d of the hypervisor: %w", m.request, err)
			}
		}
		m.close()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, unix.ECONNRESET):
			return nil
		default:
			return err
		}
	}
}

// descriptors that each request has; others have none.
func wantFDs(m *message) (least, most int) {
	switch m.request {
	case setMemTable:
		return 1, maxRegions
	case setVringKick:
		return 1, 1
	case setVringCall, setVringErr:
		return 0, 1
	}
	return 0, 0
}

// message carries out one request, and answers it if it has an answer.
func (d *device) message(m *message) error {
	if least, most := wantFDs(m); len(m.fds) < least || len(m.fds) > most {
		return fmt.Errorf("it has %d descriptors", len(m.fds))
	}
	var answer []byte
	u64 := func(v uint64) { answer = binary.LittleEndian.AppendUint64(nil, v) }
	var err error
	switch m.request {
	case getFeatures:
		u64(offered)
	case setFeatures:
		err = d.setFeatures(m)
	case getProtocolFeatures:
		u64(offeredProtocol)
	case setProtocolFeatures:
		var f uint64
		if f, err = m.u64(); err == nil && f&^offeredProtocol != 0 {
			err = fmt.Errorf("features %#x were not offered", f&^offeredProtocol)
		}
		d.acks = f&replyAck != 0
	case getQueueNum:
		u64(queues)
	case setOwner, resetOwner:
	case setMemTable:
		err = d.setMemory(m)
	case getVringBase:
		var q *queue
		var i uint32
		if q, i, _, err = d.vring(m); err == nil {
			q.stop()
			q.close()
			u64(uint64(i) | uint64(q.base)<<32)
		}
	case setVringNum, setVringAddr, setVringBase, setVringEnable:
		err = d.setVring(m)
	case setVringKick, setVringCall, setVringErr:
		err = d.setEvent(m)
	default:
		err = errors.New("it is not known, and was not offered")
	}
	if err != nil {
		return err
	}
	if answer == nil && d.acks && m.flags&needReply != 0 {
		u64(0)
	}
	if answer == nil {
		return nil
	}
	return reply(d.conn, m.request, answer)
}

func (d *device) setFeatures(m *message) error {
	f, err := m.u64()
	switch {
	case err != nil:
		return err
	case f&^uint64(offered) != 0:
		return fmt.Errorf("features %#x were not offered", f&^uint64(offered))
	case f&version1 == 0:
		return errors.New("the driver is a legacy one: start QEMU with -global virtio-mmio.force-legacy=false")
	}
	return nil
}

// setMemory replaces the table of memory.
func (d *device) setMemory(m *message) error {
	if len(m.payload) < 8 {
		return fmt.Errorf("it has %d bytes", len(m.payload))
	}
	n := int(binary.LittleEndian.Uint32(m.payload))
	if n != len(m.fds) || len(m.payload) != 8+n*regionSize {
		return fmt.Errorf("%d regions in %d bytes with %d descriptors", n, len(m.payload), len(m.fds))
	}
	var table memory
	for i := range n {
		b := m.payload[8+i*regionSize:]
		u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
		r, err := mapRegion(m.fds[i], u64(0), u64(2), u64(1), u64(3))
		if err != nil {
			table.unmap()
			return err
		}
		table = append(table, r)
	}
	// Rings are in the old memory. Requests that are being handled keep addresses of the
	// guest, which are looked up in the new one.
	var restart []*queue
	for _, q := range d.queue {
		if q.ring != nil {
			q.stop()
			restart = append(restart, q)
		}
	}
	d.mapped.Lock()
	table, d.memory = d.memory, table
	d.mapped.Unlock()
	table.unmap()
	for _, q := range restart {
		if err := q.start(); err != nil {
			return err
		}
	}
	return nil
}

// vring returns the queue that a message with a number is about.
func (d *device) vring(m *message) (q *queue, i, n uint32, err error) {
	if i, n, err = m.state(); err != nil {
		return nil, 0, 0, err
	}
	if i >= queues {
		return nil, 0, 0, fmt.Errorf("queue %d of %d", i, queues)
	}
	return d.queue[i], i, n, nil
}

// setVring sets what only a queue that is stopped may change.
func (d *device) setVring(m *message) error {
	if m.request == setVringAddr {
		return d.setAddresses(m)
	}
	q, _, n, err := d.vring(m)
	if err != nil {
		return err
	}
	if m.request == setVringEnable {
		if q.enabled = n != 0; !q.enabled {
			q.stop()
		}
		return q.start()
	}
	if q.ring != nil {
		return errors.New("the queue is running")
	}
	if m.request == setVringNum {
		if n > maxRing {
			return fmt.Errorf("a queue of %d descriptors, want at most %d", n, maxRing)
		}
		q.num = int(n)
	} else {
		if n > 0xffff {
			return fmt.Errorf("an index of %d", n)
		}
		q.base = uint16(n)
	}
	return nil
}

// setAddresses takes struct vhost_vring_addr: index, flags, descriptors, used, available
// and the log's address.
func (d *device) setAddresses(m *message) error {
	if len(m.payload) != 40 {
		return fmt.Errorf("it has %d bytes, want 40", len(m.payload))
	}
	i, flags := binary.LittleEndian.Uint32(m.payload), binary.LittleEndian.Uint32(m.payload[4:])
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(m.payload[at:]) }
	switch {
	case i >= queues:
		return fmt.Errorf("queue %d of %d", i, queues)
	case flags != 0:
		return errors.New("a log was not offered")
	case d.queue[i].ring != nil:
		return errors.New("the queue is running")
	}
	q := d.queue[i]
	q.addr = [3]uint64{u64(8), u64(24), u64(16)}
	if _, err := newRing(d.memory, q.num, q.addr[0], q.addr[1], q.addr[2]); err != nil {
		return err
	}
	return q.start()
}

// setEvent takes an eventfd of a queue.
func (d *device) setEvent(m *message) error {
	v, err := m.u64()
	if err != nil {
		return err
	}
	const index, none = 0xff, 1 << 8
	i := v & index
	if i >= queues || v&^uint64(index|none) != 0 || (v&none == 0) != (len(m.fds) == 1) {
		return fmt.Errorf("queue %#x with %d descriptors", v, len(m.fds))
	}
	q, fd := d.queue[i], -1
	if len(m.fds) == 1 {
		fd = m.take(0)
	}
	switch m.request {
	case setVringKick:
		if q.ring != nil {
			unix.Close(fd)
			return errors.New("the queue is running")
		}
		if q.kick != nil {
			q.kick.Close()
		}
		// A thread of its own waits for requests: an answer is there 3 µs earlier, of 10.
		// One thread of Go's waits for what is urgent, of all devices.
		if err := unix.SetNonblock(fd, i == urgent); err != nil {
			unix.Close(fd)
			return err
		}
		q.kick = os.NewFile(uintptr(fd), "kick")
		return q.start()
	case setVringCall:
		// The workers notify by it while it changes.
		running := q.ring != nil
		q.stop()
		replace(&q.call, fd)
		if fd >= 0 {
			err = unix.SetNonblock(fd, true)
		}
		if err == nil && running {
			err = q.start()
		}
		return err
	}
	replace(&fd, -1)
	return nil
}

func replace(fd *int, by int) {
	if *fd >= 0 {
		unix.Close(*fd)
	}
	*fd = by
}

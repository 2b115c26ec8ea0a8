package vhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// maxRing is the most descriptors of a queue, and of an indirect table (QEMU's
// VIRTQUEUE_MAX_SIZE; Linux's virtio-fs uses fewer).
const maxRing = 1024

// Of struct virtq_desc, virtio 1.2, 2.7.5.
const (
	descSize     = 16
	descNext     = 1
	descWrite    = 2
	descIndirect = 4
)

// noInterrupt in the available ring's flags: the driver wants no notification.
const noInterrupt = 1

// ring is a split virtqueue in the guest's memory.
type ring struct {
	num               int
	desc, avail, used []byte
	next              uint16 // the next entry of the available ring to take
	done              uint16 // the used ring's index
}

// segment is one buffer in the guest's memory.
type segment struct {
	addr uint64
	len  uint32
}

// chain is a request: what the device reads, and where it may write.
type chain struct {
	head    uint16
	in, out []segment
	inLen   uint64
	outLen  uint64
}

// newRing finds a ring's three parts by addresses in the hypervisor's process.
func newRing(m memory, num int, desc, avail, used uint64) (*ring, error) {
	if num <= 0 || num > maxRing || num&(num-1) != 0 {
		return nil, fmt.Errorf("a queue has %d descriptors, want a power of two up to %d", num, maxRing)
	}
	r := &ring{num: num}
	for _, part := range []struct {
		to    *[]byte
		addr  uint64
		align uintptr // 4 where virtio wants 2: flags and index are read together
		size  int
	}{
		{&r.desc, desc, 16, descSize * num},
		{&r.avail, avail, 4, 4 + 2*num},
		{&r.used, used, 4, 4 + 8*num},
	} {
		b, err := m.atUser(part.addr, uint64(part.size))
		if err != nil {
			return nil, err
		}
		if uintptr(unsafe.Pointer(&b[0]))%part.align != 0 {
			return nil, fmt.Errorf("a part of a queue at %#x is not aligned to %d", part.addr, part.align)
		}
		*part.to = b
	}
	r.done = binary.LittleEndian.Uint16(r.used[2:])
	return r, nil
}

// word is the flags and the index at the start of the available or the used ring: read
// and written at once, and in order with what is around it.
func word(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(&b[0])) }

// pop takes the next request; ok is false if there is none.
func (r *ring) pop(m memory) (c chain, ok bool, err error) {
	index := uint16(atomic.LoadUint32(word(r.avail)) >> 16)
	if index == r.next {
		return chain{}, false, nil
	}
	if waiting := index - r.next; int(waiting) > r.num {
		return chain{}, false, fmt.Errorf("%d requests are available in a queue of %d", waiting, r.num)
	}
	head := binary.LittleEndian.Uint16(r.avail[4+2*(int(r.next)%r.num):])
	if c, err = r.chain(m, head); err != nil {
		return chain{}, false, err
	}
	r.next++
	return c, true, nil
}

// chain follows a chain of descriptors from its head. Each is copied once, and there are
// at most as many as its table has.
func (r *ring) chain(m memory, head uint16) (chain, error) {
	c, table, at, indirect := chain{head: head}, r.desc, int(head), false
	for left := r.num; ; left-- {
		if n := len(table) / descSize; at >= n {
			return c, fmt.Errorf("descriptor %d of %d", at, n)
		}
		if left == 0 {
			return c, errors.New("a chain of descriptors doesn't end")
		}
		var d [descSize]byte
		copy(d[:], table[at*descSize:])
		s := segment{binary.LittleEndian.Uint64(d[0:]), binary.LittleEndian.Uint32(d[8:])}
		flags, next := binary.LittleEndian.Uint16(d[12:]), binary.LittleEndian.Uint16(d[14:])
		if flags&descIndirect != 0 {
			// It is all of the chain, and has none itself.
			if indirect || left != r.num || flags != descIndirect || s.len%descSize != 0 || s.len/descSize > maxRing || s.len == 0 {
				return c, errors.New("an indirect table of descriptors is not valid")
			}
			indirect = true
			var err error
			if table, err = m.at(s.addr, uint64(s.len)); err != nil {
				return c, err
			}
			at, left = 0, len(table)/descSize+1
			continue
		}
		if _, err := m.at(s.addr, uint64(s.len)); err != nil {
			return c, err
		}
		switch {
		case flags&descWrite != 0:
			c.out, c.outLen = append(c.out, s), c.outLen+uint64(s.len)
		case len(c.out) > 0:
			return c, errors.New("a descriptor to read follows one to write")
		default:
			c.in, c.inLen = append(c.in, s), c.inLen+uint64(s.len)
		}
		if flags&descNext == 0 {
			return c, nil
		}
		at = int(next)
	}
}

// read copies what a chain has for the device.
func (c chain) read(m memory, to []byte) ([]byte, error) {
	if c.inLen > uint64(len(to)) {
		return nil, fmt.Errorf("a request has %d bytes, want at most %d", c.inLen, len(to))
	}
	n := 0
	for _, s := range c.in {
		b, err := m.at(s.addr, uint64(s.len))
		if err != nil {
			return nil, err
		}
		n += copy(to[n:], b)
	}
	return to[:n], nil
}

// write copies a response, which has at most outLen bytes, to where the chain wants it.
func (c chain) write(m memory, response []byte) error {
	for _, s := range c.out {
		if len(response) == 0 {
			break
		}
		b, err := m.at(s.addr, uint64(s.len))
		if err != nil {
			return err
		}
		response = response[copy(b, response):]
	}
	return nil
}

// push gives a request back with the n bytes that were written, and reports whether the
// driver wants to be notified.
func (r *ring) push(c chain, n int) bool {
	at := 4 + 8*(int(r.done)%r.num)
	binary.LittleEndian.PutUint32(r.used[at:], uint32(c.head))
	binary.LittleEndian.PutUint32(r.used[at+4:], uint32(n))
	r.done++
	atomic.StoreUint32(word(r.used), uint32(r.done)<<16)
	return atomic.LoadUint32(word(r.avail))&noInterrupt == 0
}

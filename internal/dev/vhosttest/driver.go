// Package vhosttest is the hypervisor's and the guest's side of a virtio-fs device, for
// tests: messages on the socket, and requests in shared memory. It can lie as either.
package vhosttest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is the size of the guest's memory, which begins at physical address Guest and,
// for the hypervisor, at User.
const (
	Memory = 4 << 20
	Guest  = 0x10000
	User   = 0x7f00_0000_0000
)

// Ring is the number of descriptors of a queue; its parts are at these offsets in memory.
const (
	Ring    = 64
	DescAt  = 0
	AvailAt = 0x2000
	UsedAt  = 0x4000
	DataAt  = 0x10000
)

// Flags of a descriptor.
const (
	Next     = 1
	Write    = 2
	Indirect = 4
)

// Requests on the socket (vhost-user.rst).
const (
	SetFeatures  = 2
	SetMemTable  = 5
	SetVringNum  = 8
	SetVringAddr = 9
	SetVringBase = 10
	GetVringBase = 11
	SetVringKick = 12
	SetVringCall = 13
)

// Version1 is the one feature that a driver has to accept.
const Version1 = 1 << 32

// Driver has the other end of a device's socket.
type Driver struct {
	t          testing.TB
	Conn       *net.UnixConn
	FD         int // of the memory
	Mem        []byte
	kick, call int
	avail      uint16
}

// Pair returns two ends of a socket.
func Pair(t testing.TB) (driver, device *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "vhost-user")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = c.(*net.UnixConn)
		t.Cleanup(func() { c.Close() })
	}
	return ends[0], ends[1]
}

// New returns a driver without a queue.
func New(t testing.TB, conn *net.UnixConn) *Driver {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, Memory)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{t: t, Conn: conn, FD: fd}
	if d.Mem, err = unix.Mmap(fd, 0, Memory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*int{&d.kick, &d.call} {
		if *e, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		unix.Munmap(d.Mem)
		for _, fd := range []int{d.FD, d.kick, d.call} {
			unix.Close(fd)
		}
	})
	return d
}

// Send sends a message.
func (d *Driver) Send(request uint32, payload []byte, fds ...int) {
	b := binary.LittleEndian.AppendUint32(nil, request)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	d.Raw(append(b, payload...), fds...)
}

// Raw sends bytes. That the device has already ended is no failure.
func (d *Driver) Raw(b []byte, fds ...int) {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, _ = d.Conn.WriteMsgUnix(b, oob, nil)
}

// U64 is a payload of numbers.
func U64(all ...uint64) (b []byte) {
	for _, v := range all {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Start sets the memory and the queue with an index.
func (d *Driver) Start(queue uint64) {
	d.Send(SetFeatures, U64(Version1))
	d.Send(SetMemTable, U64(1, Guest, Memory, User, 0), d.FD)
	d.Send(SetVringNum, U64(queue|Ring<<32))
	d.Send(SetVringBase, U64(queue))
	d.Send(SetVringAddr, U64(queue, User+DescAt, User+UsedAt, User+AvailAt, 0))
	d.Send(SetVringCall, U64(queue), d.call)
	d.Send(SetVringKick, U64(queue), d.kick)
}

// Desc writes a descriptor of the ring. Its address is one of the guest's.
func (d *Driver) Desc(i int, addr uint64, size uint32, flags, next uint16) {
	PutDesc(d.Mem[DescAt+16*i:], addr, size, flags, next)
}

// PutDesc writes a descriptor.
func PutDesc(b []byte, addr uint64, size uint32, flags, next uint16) {
	binary.LittleEndian.PutUint64(b, addr)
	binary.LittleEndian.PutUint32(b[8:], size)
	binary.LittleEndian.PutUint16(b[12:], flags)
	binary.LittleEndian.PutUint16(b[14:], next)
}

// Avail makes the chain from a descriptor available, and kicks.
func (d *Driver) Avail(head uint16) {
	binary.LittleEndian.PutUint16(d.Mem[AvailAt+4+2*(int(d.avail)%Ring):], head)
	d.avail++
	d.Index(d.avail)
}

// Index sets the index of the available ring, and kicks.
func (d *Driver) Index(i uint16) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&d.Mem[AvailAt])), uint32(i)<<16)
	d.Kick()
}

// Kick tells the device that there are requests.
func (d *Driver) Kick() { _, _ = unix.Write(d.kick, U64(1)) }

// Used is the index of the used ring.
func (d *Driver) Used() uint16 {
	return uint16(atomic.LoadUint32((*uint32)(unsafe.Pointer(&d.Mem[UsedAt]))) >> 16)
}

// Do sends one request, with room for size bytes of an answer, and waits for that. The
// request is split into two buffers, as a kernel does.
func (d *Driver) Do(request []byte, size int) ([]byte, error) {
	d.t.Helper()
	before, at := d.Used(), uint64(Guest+DataAt)
	copy(d.Mem[DataAt:], request)
	half := uint32(len(request) / 2)
	d.Desc(0, at, half, Next, 1)
	answer := at + uint64(len(request)+0xfff)&^0xfff
	last, next := uint16(0), uint16(0)
	if size > 0 {
		last, next = Next, 2
	}
	d.Desc(1, at+uint64(half), uint32(len(request))-half, last, next)
	d.Desc(2, answer, uint32(size), Write, 0)
	d.Avail(0)
	for end := time.Now().Add(10 * time.Second); d.Used() == before; {
		p := []unix.PollFd{{Fd: int32(d.call), Events: unix.POLLIN}}
		if n, _ := unix.Poll(p, 100); n > 0 {
			_, _ = unix.Read(d.call, make([]byte, 8))
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("no answer to a request of %d bytes", len(request))
		}
	}
	e := d.Mem[UsedAt+4+8*(int(before)%Ring):]
	n := binary.LittleEndian.Uint32(e[4:])
	return append([]byte(nil), d.Mem[answer-Guest:][:n]...), nil
}

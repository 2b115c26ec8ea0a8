package vhost

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Handler answers a request. It owns in and out until it returns, and may write up to
// len(out) bytes; n is how many it wrote. Both are private copies. An error ends the
// session. It is called by several goroutines at once.
type Handler func(in, out []byte) (n int, err error)

// Buffers are the copies of requests and responses that devices have at once: each has a
// place in a request's way from the queue to its response.
type Buffers struct{ free chan *buffer }

type buffer struct{ in, out []byte }

// NewBuffers returns n places for requests and for responses of up to size bytes.
// Memory is taken when a place is first used.
func NewBuffers(n, size int) *Buffers {
	b := &Buffers{make(chan *buffer, n)}
	for range n {
		b.free <- &buffer{make([]byte, size), make([]byte, size)}
	}
	return b
}

// workers is how many requests of a queue are handled at once.
const workers = 4

// queue is one virtqueue of a device.
type queue struct {
	dev     *device
	num     int
	addr    [3]uint64 // of the descriptors, the available and the used ring
	base    uint16
	kick    *os.File // an eventfd; nil: none
	call    int      // an eventfd; -1: none
	enabled bool

	ring     *ring // nil: stopped
	stopping atomic.Bool
	running  sync.WaitGroup
	leader   sync.Mutex // held by the worker that waits for the next request
	finish   sync.Mutex // of the used ring
}

// start begins to take requests, once all that is needed has been set.
func (q *queue) start() error {
	if q.ring != nil || !q.enabled || q.kick == nil || q.addr == [3]uint64{} {
		return nil
	}
	r, err := newRing(q.dev.memory, q.num, q.addr[0], q.addr[1], q.addr[2])
	if err != nil {
		return err
	}
	r.next = q.base
	q.ring = r
	q.stopping.Store(false)
	for range workers {
		q.running.Go(q.work)
	}
	return nil
}

// stop waits until no request is being handled.
func (q *queue) stop() {
	if q.ring == nil {
		return
	}
	q.stopping.Store(true)
	q.wake()
	q.running.Wait()
	q.base, q.ring = q.ring.next, nil
}

// wake lets the worker that waits look at the state. A counter that is full would wake
// it anyway.
func (q *queue) wake() { _, _ = q.kick.Write(one()) }

// one is what increments an eventfd.
func one() []byte { return binary.NativeEndian.AppendUint64(nil, 1) }

// notify increments an eventfd; it doesn't wait for room in it.
func notify(fd int) {
	if fd >= 0 {
		_, _ = unix.Write(fd, one())
	}
}

// work takes requests. One worker waits at a time, and handles what it got itself, so
// that a request needs no other goroutine on its way; the next worker waits in the
// meantime.
func (q *queue) work() {
	defer func() {
		if p := recover(); p != nil {
			q.dev.fail(fmt.Errorf("a request: %v", p))
		}
	}()
	for {
		q.leader.Lock()
		c, b, ok := q.wait()
		q.leader.Unlock()
		if !ok {
			return
		}
		err := q.handle(c, b)
		q.dev.buffers.free <- b
		if err != nil {
			q.dev.fail(err)
			return
		}
	}
}

// wait returns the next request and a place for it; not ok: the queue stops.
func (q *queue) wait() (c chain, b *buffer, ok bool) {
	for !q.stopping.Load() {
		q.dev.mapped.RLock()
		c, ok, err := q.ring.pop(q.dev.memory)
		q.dev.mapped.RUnlock()
		if err != nil {
			q.dev.fail(err)
			return c, nil, false
		}
		if ok {
			return c, <-q.dev.buffers.free, true
		}
		var count [8]byte
		if _, err := q.kick.Read(count[:]); err != nil {
			q.dev.fail(fmt.Errorf("wait for a request: %w", err))
			return c, nil, false
		}
	}
	q.wake() // the next worker has to see it too
	return c, nil, false
}

func (q *queue) handle(c chain, b *buffer) error {
	in, err := q.read(c, b)
	if err != nil {
		return err
	}
	out := b.out[:min(uint64(len(b.out)), c.outLen)]
	n, err := q.dev.handler(in, out)
	if err != nil {
		return err
	}
	q.dev.mapped.RLock()
	defer q.dev.mapped.RUnlock()
	if err := c.write(q.dev.memory, out[:n]); err != nil {
		return err
	}
	q.finish.Lock()
	wanted := q.ring.push(c, n)
	q.finish.Unlock()
	if wanted {
		notify(q.call)
	}
	return nil
}

func (q *queue) read(c chain, b *buffer) ([]byte, error) {
	q.dev.mapped.RLock()
	defer q.dev.mapped.RUnlock()
	return c.read(q.dev.memory, b.in)
}

func (q *queue) close() {
	if q.kick != nil {
		q.kick.Close()
	}
	q.kick = nil
	replace(&q.call, -1)
}

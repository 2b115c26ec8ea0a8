//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// The attacks of the hostile room while the other room works.
const (
	hostileHeld    = 2600 // connections in their worst state: more than its places
	hostileBroken  = 30   // that are reset at any point, again and again
	hostileDNS     = 20   // that ask, 50 questions a second each
	hostileDenied  = 10   // that send what is refused, 50 packets a second each
	hostileRefused = 10   // that ask for hosts that are refused, 20 a second each
)

// Where its accomplices listen, and what is published of it.
const (
	hostileAnswers = "198.51.100.201:9101" // answers a head at once
	hostileSends   = "198.51.100.201:9102" // sends from the beginning
	hostilePort    = 20000
)

// hostileKinds are the most expensive connections for a guard: their peers don't read.
var hostileKinds = []struct{ to, say string }{
	{"198.51.100.9:80", "GET / HTTP/1.1\r\nHost: " + soakHost(0) + "\r\nX: "},
	{"198.51.100.9:443", "\x16\x03\x01\x10\x00\x01\x00\x0f\xfc\x03\x03"},
	{"198.51.100.54:53", "\x0f\xff"},
	{"127.0.0.1:536", "POST http://" + hostileAnswers + "/ HTTP/1.1\r\nHost: " + hostileAnswers + "\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n"},
	{"127.0.0.1:536", "POST http://" + hostileAnswers + "/ HTTP/1.1\r\nHost: " + hostileAnswers + "\r\nContent-Length: 2147483647\r\n\r\n"},
	{"127.0.0.1:536", "GET http://" + hostileAnswers + "/ HTTP/1.1\r\nHost: " + hostileAnswers + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	{"127.0.0.1:536", "CONNECT " + hostileSends + " HTTP/1.1\r\nHost: " + hostileSends + "\r\n\r\n"},
	{hostileSends, ""},
	{"", ""}, // to the published port
}

// hostile is the load of the hostile room.
type hostile struct {
	*soakWorld
	wg    sync.WaitGroup
	mu    sync.Mutex
	held  map[net.Conn]struct{} // sides that don't read
	count struct{ connections, questions, packets, requests atomic.Int64 }
}

// begin starts everything; it goes on until ctx ends.
func (h *hostile) begin(ctx context.Context) error {
	h.held = map[net.Conn]struct{}{}
	for addr, answer := range map[string]func(net.Conn) bool{hostileAnswers: answerHead, hostileSends: func(net.Conn) bool { return true }} {
		if err := h.listen(ctx, h.in.NS(), addr, answer); err != nil {
			return err
		}
	}
	if err := h.listen(ctx, h.hostileNS, "127.0.0.1:8080", func(net.Conn) bool { return true }); err != nil {
		return err
	}
	each := func(n int, pauses func() time.Duration, do func(i int)) {
		for i := range n {
			h.wg.Go(func() {
				pause(ctx, time.Duration(rand.IntN(2000))*time.Millisecond)
				for ctx.Err() == nil {
					do(i)
					pause(ctx, pauses())
				}
			})
		}
	}
	every := func(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
	each(hostileHeld, every(100*time.Millisecond), func(int) { h.hold(ctx, time.Duration(1+rand.IntN(30))*time.Second) })
	each(hostileBroken, every(20*time.Millisecond), func(int) { h.hold(ctx, time.Duration(rand.IntN(30))*time.Millisecond) })
	each(hostileDNS, every(time.Second/5), func(i int) { h.questions(i) })
	each(hostileDenied, every(time.Second/50), func(i int) { h.packet(i) })
	each(hostileRefused, every(time.Second/20), func(int) { h.refused() })
	h.wg.Go(func() { h.press(ctx) })
	return nil
}

// listen serves an address until ctx ends: connections that are answered are held.
func (h *hostile) listen(ctx context.Context, ns *testnet.NS, addr string, answer func(net.Conn) bool) error {
	var l net.Listener
	if err := ns.Do(func() (err error) { l, err = fewBytes.Listen(ctx, "tcp", addr); return err }); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go testnet.Serve(l, func(c net.Conn) {
		if answer(c) {
			h.keep(ctx, c, time.Duration(rand.IntN(20_000))*time.Millisecond)
		}
	})
	return nil
}

func answerHead(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := c.Read(one); err != nil {
			return false
		}
	}
	answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n"
	if bytes.Contains(head, []byte("Upgrade")) {
		answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	}
	_, err := io.WriteString(c, answer)
	return err == nil
}

// fewBytes makes sockets that hold little of what they send themselves: what is
// filled is the guard's memory.
var fewBytes = net.ListenConfig{Control: smallSend}

func smallSend(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<10) })
}

// hold opens a connection of any kind and ends it after a time, by a reset as
// often as not.
func (h *hostile) hold(ctx context.Context, life time.Duration) {
	k := hostileKinds[rand.IntN(len(hostileKinds))]
	ns, to := h.hostileNS, k.to
	if to == "" {
		ns, to = h.outside, fmt.Sprintf("127.0.0.1:%d", hostilePort)
	}
	d := net.Dialer{Timeout: 5 * time.Second, Control: smallSend}
	var c net.Conn
	if ns.Do(func() (err error) { c, err = d.DialContext(ctx, "tcp", to); return err }) != nil {
		return
	}
	h.count.connections.Add(1)
	defer c.Close()
	some := k.say
	if life < time.Second && some != "" { // anywhere
		some = some[:rand.IntN(len(some))]
	}
	if _, err := io.WriteString(c, some); err == nil {
		h.keep(ctx, c, life)
	}
}

// keep lets press write to a connection for a time.
func (h *hostile) keep(ctx context.Context, c net.Conn, life time.Duration) {
	h.mu.Lock()
	h.held[c] = struct{}{}
	h.mu.Unlock()
	pause(ctx, life)
	h.mu.Lock()
	delete(h.held, c)
	h.mu.Unlock()
	if rand.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

// press fills what can be filled, again and again.
func (h *hostile) press(ctx context.Context) {
	bytes := make([]byte, 16<<10)
	for ; ctx.Err() == nil; pause(ctx, 500*time.Millisecond) {
		h.mu.Lock()
		all := make([]net.Conn, 0, len(h.held))
		for c := range h.held {
			all = append(all, c)
		}
		h.mu.Unlock()
		for _, c := range all {
			raw, err := c.(*net.TCPConn).SyscallConn()
			if err != nil {
				continue
			}
			_ = raw.Write(func(fd uintptr) bool {
				for range 16 {
					if _, err := unix.Write(int(fd), bytes); err != nil {
						break
					}
				}
				return true
			})
		}
	}
}

// questions asks for ten names of very many, and doesn't wait for the answers.
func (h *hostile) questions(i int) {
	c, err := h.dialIn(h.hostileNS, "udp", "198.51.100.54:53")
	if err != nil {
		return
	}
	defer c.Close()
	for range 10 {
		name := fmt.Sprintf("x%d.wild.example.org.", rand.IntN(1<<30))
		if i%2 == 0 {
			name = fmt.Sprintf("x%d.denied.example.org.", rand.IntN(1<<30))
		}
		if q, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack(); err == nil {
			_, _ = c.Write(q)
			h.count.questions.Add(1)
		}
	}
}

// packet sends what the room's rules refuse.
func (h *hostile) packet(i int) {
	if i%2 == 0 {
		if c, err := h.dialIn(h.hostileNS, "tcp", fmt.Sprintf("198.51.100.92:%d", 1+rand.IntN(60_000))); err == nil {
			c.Close()
		}
	} else if c, err := h.dialIn(h.hostileNS, "udp", fmt.Sprintf("198.51.100.92:%d", 1+rand.IntN(60_000))); err == nil {
		_, _ = c.Write([]byte("x"))
		c.Close()
	}
	h.count.packets.Add(1)
}

// refused asks for hosts that no line allows: each is an event of its own.
func (h *hostile) refused() {
	c, err := h.dialIn(h.hostileNS, "tcp", "198.51.100.9:80")
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x%d.denied.example.org\r\nConnection: close\r\n\r\n", rand.IntN(1<<30))
	_, _ = io.Copy(io.Discard, c)
	h.count.requests.Add(1)
}

func (h *hostile) report() {
	fmt.Printf("the hostile room: %d connections, %d questions, %d refused packets, %d refused requests\n",
		h.count.connections.Load(), h.count.questions.Load(), h.count.packets.Load(), h.count.requests.Load())
}

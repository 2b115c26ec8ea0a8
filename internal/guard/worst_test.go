package guard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Where the worker's accomplices listen.
const (
	worstAnswers = "198.51.100.201:9101" // answers a request's head at once, then sends without end
	worstSends   = "198.51.100.201:9102" // sends without end
	worstBudget  = "198.51.100.202:9102" // the same, by a line with a budget
)

type worstKind struct {
	name string
	to   string // from inside the room; "": to a published port
	say  string // what the client begins with
	// silent: the client says nothing more, or its head would be complete.
	silent bool
}

// worstKinds are connections that cost the guard the most: neither side reads,
// and both send what they can.
var worstKinds = []worstKind{
	{name: "head", to: testnet.Evil + ":80", say: "GET / HTTP/1.1\r\nHost: allowed.example.org\r\nX: " + strings.Repeat("x", 3900), silent: true},
	{name: "hello", to: testnet.Evil + ":443", say: "\x16\x03\x01\x10\x00\x01\x00\x0f\xfc\x03\x03" + strings.Repeat("x", 3900), silent: true},
	{name: "chunked", to: explicitAddr, say: "POST http://" + worstAnswers + "/ HTTP/1.1\r\nHost: " + worstAnswers + "\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n"},
	{name: "length", to: explicitAddr, say: "POST http://" + worstAnswers + "/ HTTP/1.1\r\nHost: " + worstAnswers + "\r\nContent-Length: 2147483647\r\n\r\n"},
	{name: "unanswered", to: explicitAddr, say: "POST http://" + worstSends + "/ HTTP/1.1\r\nHost: " + worstSends + "\r\nContent-Length: 2147483647\r\n\r\n"},
	{name: "response", to: explicitAddr, say: "GET http://" + worstAnswers + "/ HTTP/1.1\r\nHost: " + worstAnswers + "\r\n\r\n"},
	{name: "upgrade", to: explicitAddr, say: "GET http://" + worstAnswers + "/ HTTP/1.1\r\nHost: " + worstAnswers + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	{name: "tunnel", to: explicitAddr, say: "CONNECT " + worstSends + " HTTP/1.1\r\nHost: " + worstSends + "\r\n\r\n"},
	{name: "tcp", to: worstSends},
	{name: "budget", to: worstBudget},
	{name: "dns", to: testnet.DNS + ":53", say: "\x0f\xff" + strings.Repeat("x", 3900), silent: true},
	{name: "published"},
}

// worstWorld is a guard with two rooms, in a group with the limit of its container.
type worstWorld struct {
	*world
	memory, roomMemory *testutil.MemoryGroup
	far                chan net.Conn // the other sides
}

func newWorstWorld(t testing.TB) *worstWorld {
	t.Helper()
	if testutil.Race {
		t.Skip("measures memory")
	}
	p := restricted(t, "allowed.example.org", "198.51.100.200/32:9000", "198.51.100.201/32:9101-9102", "198.51.100.202/32:9102")
	rules := p.Rooms[0].Allow
	rules[len(rules)-1].Upload = firewall.Budget{Bytes: 1 << 40, Per: 24 * time.Hour}
	other := p.Rooms[0]
	other.Room, other.Workers = "room-other", []string{"other"}
	p.Rooms = append(p.Rooms, other)
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}}
	w := &worstWorld{world: buildWorld(t, p), far: make(chan net.Conn, 2*MaxConns)}
	group := func(limit int64) *testutil.MemoryGroup {
		g, err := testutil.NewMemoryGroup(limit)
		if err != nil {
			testutil.Require(t, false, "memory group: "+err.Error())
		}
		t.Cleanup(func() {
			if err := g.Remove(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	w.memory, w.roomMemory = group(firewall.GuardMemory), group(firewall.RoomMemory)
	w.groups = map[string]*testutil.MemoryGroup{"guard": w.memory, "room": w.roomMemory}
	w.startRooms()
	w.startGuard()

	take := func(c net.Conn) { w.far <- c }
	for _, addr := range []string{worstSends, worstBudget} {
		go accepted(w.listenOutside(addr), take)
	}
	go accepted(w.listenOutside(worstAnswers), func(c net.Conn) {
		var head []byte
		for br := bufio.NewReader(c); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
			line, err := br.ReadBytes('\n')
			if err != nil {
				c.Close()
				return
			}
			head = append(head, line...)
		}
		answer := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n"
		if bytes.Contains(head, []byte("Upgrade")) {
			answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
		}
		_, _ = io.WriteString(c, answer)
		take(c)
	})
	var worker net.Listener
	if err := w.rooms["room"].ns.Do(func() (err error) { worker, err = peer.Listen(t.Context(), "tcp", "127.0.0.1:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { worker.Close() })
	go accepted(worker, take)
	return w
}

func accepted(l net.Listener, take func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go take(c)
	}
}

// peer makes sockets that hold little of what they send themselves.
var peer = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<10)
	})
}}

// fill opens n connections of a kind from a room, each from the first byte on in
// its worst state, and returns all sides when nothing moves any more. Those for
// which there is no place wait.
func (w *worstWorld) fill(room, kind string, n int) (conns []net.Conn) {
	w.Helper()
	k := worstKinds[slices.IndexFunc(worstKinds, func(k worstKind) bool { return k.name == kind })]
	d := net.Dialer{Control: peer.Control, Timeout: 5 * time.Second}
	ns, to := w.rooms[room].ns, k.to
	if to == "" {
		ns, to = w.outside, "127.0.0.1:20000"
	}
	w.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	for range n {
		var c net.Conn
		err := ns.Do(func() (err error) { c, err = d.Dial("tcp", to); return err })
		if err == nil {
			conns = append(conns, c)
			_, err = io.WriteString(c, k.say)
		}
		if err != nil {
			w.Fatalf("%s, %d: %v", kind, len(conns), err)
		}
	}
	for quiet := 0; quiet < 4 && !k.silent; quiet++ {
		time.Sleep(25 * time.Millisecond)
		for range len(w.far) {
			conns, quiet = append(conns, <-w.far), 0
		}
		sent := 0
		for _, c := range conns {
			sent += flood(c)
		}
		if sent > 1<<20 {
			quiet = 0
		}
	}
	return conns
}

var nothing = make([]byte, 32<<10)

// flood sends as much as there is room for.
func flood(c net.Conn) (sent int) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool {
		for sent < 64<<20 {
			n, err := unix.Write(int(fd), nothing)
			if err != nil {
				break
			}
			sent += n
		}
		return true
	})
	return sent
}

// used returns what a group used at most, in MiB, and fails where the kernel
// ended a process for it.
func (w *worstWorld) used(g *testutil.MemoryGroup) float64 {
	w.Helper()
	peak, err := g.Peak()
	killed, err2 := g.Killed()
	if err := errors.Join(err, err2); err != nil || killed > 0 {
		w.Fatalf("OOM-killed %d times, %v", killed, err)
	}
	return float64(peak) / (1 << 20)
}

// In MiB, how much of their limits they may use; a policy of maxReplace lines is
// the guard's too.
const (
	guardMayUse = firewall.GuardMemory*8/10>>20 - maxReplace>>10
	roomMayUse  = firewall.RoomMemory * 8 / 10 >> 20
)

func (w *worstWorld) usedAtMost(guard, room float64) {
	w.Helper()
	for _, u := range []struct {
		who        string
		used, most float64
	}{{"guard", w.used(w.memory), guard}, {"room", w.used(w.roomMemory), room}} {
		if w.Logf("the %s used %.0f MiB", u.who, u.used); u.used > u.most {
			w.Errorf("that is more than %.0f", u.most)
		}
	}
}

// TestWorstState: with all places in their worst state, and more connections that
// wait, the guard isn't near its limit, and another room has what it is guaranteed
// (B60). The kinds are those that cost the most; the benchmark has all.
func TestWorstState(t *testing.T) {
	for _, kind := range []string{"chunked"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorstWorld(t)
			conns := w.fill("room", kind, 2600)
			if served, want := len(conns)-2600, connLimit()*3/4; served != want {
				t.Errorf("%d connections of one room are carried, want %d", served, want)
			}
			if _, err := w.tls("room-other", testnet.Allowed+":443", "allowed.example.org"); err != nil {
				t.Errorf("another room: %v", err)
			}
			w.fill("room-other", kind, connLimit()/4)
			w.usedAtMost(guardMayUse, roomMayUse)
		})
	}
}

// BenchmarkMemory prints what connections cost at most, with the kernel's buffers:
// 1,000 ordinary ones, and all places of each kind in its worst state.
func BenchmarkMemory(b *testing.B) {
	b.Run("ordinary", func(b *testing.B) {
		for b.Loop() {
			w := newWorstWorld(b)
			one := make([]byte, 1)
			for range 1000 {
				c := w.mustDial("room", "tcp", "198.51.100.200:9000")
				_, err := c.Write(one)
				check(b, err)
				_, err = c.Read(one)
				check(b, err)
			}
			b.ReportMetric(w.used(w.memory), "MiB")
		}
	})
	for _, k := range worstKinds {
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() {
				w := newWorstWorld(b)
				w.fill("room", k.name, connLimit()*3/4)
				if k.to != "" {
					w.fill("room-other", k.name, connLimit()/4)
				}
				b.ReportMetric(w.used(w.memory), "MiB")
				b.ReportMetric(w.used(w.roomMemory), "room-MiB")
			}
		})
	}
}

// TestLargeHeadsAreForgotten: once a request is sent its head costs nothing more,
// however long its body takes. One after the other they would all have a place.
func TestLargeHeadsAreForgotten(t *testing.T) {
	w := newWorstWorld(t)
	say := "POST http://" + worstAnswers + "/" + strings.Repeat("x", 60_000) + " HTTP/1.1\r\nHost: " + worstAnswers + "\r\nTransfer-Encoding: chunked\r\n\r\n"
	before, _, err := w.memory.Now()
	check(t, err)
	const n = 300
	for range n {
		c := w.mustDial("room", "tcp", explicitAddr)
		_, err := io.WriteString(c, say)
		check(t, err)
		select {
		case far := <-w.far:
			defer far.Close()
		case <-time.After(5 * time.Second):
			t.Fatal("the request didn't arrive")
		}
	}
	after, _, err := w.memory.Now()
	check(t, err)
	if each := (after - before) >> 10 / n; each > 120 {
		t.Errorf("%d KiB for each request, want at most 120", each)
	}
}

// TestWorstStateOfPublishedPorts: the sockets to a server in a room are made by
// the room, so their buffers are the room's.
func TestWorstStateOfPublishedPorts(t *testing.T) {
	w := newWorstWorld(t)
	conns := w.fill("room", "published", connLimit())
	if served, want := len(conns)-connLimit(), connLimit()*3/4; served != want {
		t.Errorf("%d connections are carried, want %d", served, want)
	}
	w.usedAtMost(guardMayUse, roomMayUse)
}

// TestServerThatAcceptsNothing: connections to a published port that wait for the
// worker's server hold no thread of the guard: it has 64 processes and threads.
func TestServerThatAcceptsNothing(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}}
	w := newWorld(t, p)
	if err := w.rooms["room"].ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: 8080, Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0))
	}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		var c net.Conn
		if err := w.outside.Do(func() (err error) { c, err = net.Dial("tcp", "127.0.0.1:20000"); return err }); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	// Each waits for 5 s; a thread is there after some microseconds.
	time.Sleep(300 * time.Millisecond)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.guard.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, s, _ := strings.Cut(string(b), "Threads:")
	if n, err := strconv.Atoi(strings.Fields(s)[0]); err != nil || n > 40 {
		t.Errorf("%d threads, %v", n, err)
	}
}

package guard

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B60: one room's large heads and ClientHellos, thousands of them and none
// complete, cost a bounded memory and no other room its connections.
func TestLargeHeadsCostBoundedMemory(t *testing.T) {
	if testutil.Race {
		t.Skip("measures memory")
	}
	p := restricted(t, "allowed.example.org")
	other := p.Rooms[0]
	other.Room, other.Workers = "room-other", []string{"other"}
	p.Rooms = append(p.Rooms, other)
	w := newWorld(t, p)
	record := append([]byte{22, 3, 1, 0x40, 0}, bytes.Repeat([]byte{0}, 1<<14)...)
	hello := bytes.Repeat(record, 4)[:65_000]
	copy(hello[5:], []byte{1, 0, 0xff, 0xf0})
	head := []byte("GET / HTTP/1.1\r\nHost: allowed.example.org\r\nX: " + strings.Repeat("a", 65_000))
	before := w.rss()
	const n = 600
	for i := range n {
		port, text := ":443", hello
		if i%2 == 0 {
			port, text = ":80", head
		}
		c := w.mustDial("room", "tcp", testnet.Evil+port)
		c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = c.Write(text) // what is refused may be reset meanwhile
	}
	// 300 connections with 64 KiB each, read and joined, are some 60 MiB. Of two
	// rooms one may have three quarters of the places.
	if grown := w.rss() - before; grown > 32 {
		t.Errorf("the guard grew by %.0f MiB", grown)
	}
	if _, err := w.tls("room-other", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Errorf("another room: %v", err)
	}
	w.guard.eventually(n-maxLarge*3/4, "refused large heads", func(e event) bool { return e.Reason == "busy" && e.Room == "room" })
}

// B60: a short head of many lines costs as much as a large one once it is parsed,
// and is counted as one: thousands of them would be more than the guard's memory.
func TestManyLinesAreALargeHead(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	const start = "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n"
	ask := func(lines int) {
		c := w.mustDial("room", "tcp", testnet.Evil+":80")
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, start+strings.Repeat("X:\r\n", lines))
	}
	for range 2 * maxLarge {
		ask(smallLines)
	}
	for range 2 * maxLarge {
		ask(200)
	}
	w.guard.eventually(maxLarge, "refused heads of many lines", func(e event) bool { return e.Reason == "busy" })
}

// smallLines is below the one of internal/guard/proxy.
const smallLines = 30

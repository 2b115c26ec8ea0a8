package guard

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestB60_ResetsAtEveryPoint: who resets after every byte of what a way reads, and
// servers of a published port that reset at once, cost their own connections; the
// guard panics nowhere and goes on serving.
func TestB60_ResetsAtEveryPoint(t *testing.T) {
	p := restricted(t, "allowed.example.org", "ssh.example.org:22")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}}
	w := newWorld(t, p)
	reset := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	message, err := new(dns.Msg).SetQuestion("allowed.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, addr string
		bytes      []byte
		each       int // every so many bytes
	}{
		{"DNS over TCP", "10.0.0.1:53", append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...), 1},
		{"TLS", testnet.Allowed + ":443", hello("allowed.example.org"), 41},
		{"CONNECT", explicitAddr, []byte("CONNECT allowed.example.org:443 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n"), 1},
		{"tunnel to 80", explicitAddr, []byte("CONNECT allowed.example.org:80 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\nPOST / HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 3\r\n\r\nabc"), 1},
	} {
		for at := 0; at <= len(x.bytes); at += x.each {
			c, err := w.dial("room", "tcp", x.addr)
			if err != nil {
				t.Fatalf("%s, %d: %v", x.name, at, err)
			}
			c.Write(x.bytes[:at])
			if at%2 == 0 { // the guard has read it, or not
				c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
				c.Read(make([]byte, 1))
			}
			reset(c)
		}
	}
	var server net.Listener
	if err := w.rooms["room"].ns.Do(func() (err error) { server, err = net.Listen("tcp", "127.0.0.1:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			reset(c)
		}
	}()
	came := func() int {
		return w.guard.count(func(e event) bool { return e.Kind == "inbound" && e.Verdict == "end" })
	}
	for i := 0; i < 200 || i < 5000 && came() < 50; i++ { // on a busy machine many are reset too early
		_ = w.outside.Do(func() error {
			c, err := net.DialTimeout("tcp", "127.0.0.1:20000", 5*time.Second)
			if err != nil {
				return err // reset already
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(c, "x")
			_, _ = io.Copy(io.Discard, c)
			return nil
		})
	}
	if c, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Error(err)
	} else if _, status, _ := get(w, c, "https://allowed.example.org/"); status != 200 {
		t.Errorf("status %d, want 200", status)
	}
	w.settled(t)
	if n := came(); n < 50 {
		t.Errorf("%d connections to the published port came about", n)
	}
}

// settled checks that the guard hasn't panicked and carries nothing any more.
func (w *world) settled(t *testing.T) {
	t.Helper()
	end := time.Now().Add(5 * time.Second)
	s := w.state()
	for s.Rooms[0].Connections > 1 && time.Now().Before(end) { // the control's own
		time.Sleep(10 * time.Millisecond)
		s = w.state()
	}
	if s.Panics != 0 || s.Rooms[0].Connections > 1 {
		t.Errorf("%d panics, %d connections, want none and 1", s.Panics, s.Rooms[0].Connections)
	}
}

package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestB27_HeadOfALateHello: a tunnel that waits for its ClientHello when its line
// goes sends nothing of what comes then: a hello has place for 64 KiB of anything.
func TestB27_HeadOfALateHello(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Proxy = "http://198.51.100.80:3128"
	w := buildWorld(t, p)
	l := w.listenOutside("198.51.100.80:3128")
	got := make(chan int64, 10)
	go testnet.Serve(l, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		n, _ := io.Copy(io.Discard, br)
		got <- n
	})
	w.startRooms()
	w.startGuard()
	tunnel := func() net.Conn {
		c := w.mustDial("room", "tcp", explicitAddr)
		c.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(c, "CONNECT allowed.example.org:443 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		return c
	}
	c := tunnel()
	q := restricted(t, "other.example.org")
	q.Proxy = p.Proxy
	w.replace(q)
	c.Write(hello("allowed.example.org"))
	io.Copy(io.Discard, c)
	if n := <-got; n != 0 {
		t.Errorf("%d bytes arrived after the line was gone", n)
	}
	w.replace(firewall.Policy{Rooms: p.Rooms, Proxy: p.Proxy}) // the control
	c = tunnel()
	c.Write(hello("allowed.example.org"))
	c.Close()
	if n := <-got; n == 0 {
		t.Error("control: nothing arrived")
	}
}

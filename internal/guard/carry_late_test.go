package guard

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestB27_WhileDialling: a connection that is allowed, and still being dialled
// when its line goes, isn't carried by the line that it once had.
func TestB27_WhileDialling(t *testing.T) {
	p := restricted(t, "allowed.example.org", "allowed.example.org:9000", "198.51.100.192/26:9000")
	p.Proxy = "http://198.51.100.80:3128"
	w := buildWorld(t, p)
	l := w.listenOutside("198.51.100.80:3128")
	dialling, on := make(chan bool, 10), make(chan bool)
	go testnet.Serve(l, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		dialling <- true
		<-on
		io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		io.Copy(io.Discard, br)
	})
	w.startRooms()
	w.startGuard()
	open := func() (conns []net.Conn) {
		c := w.mustDial("room", "tcp", testnet.Allowed+":443")
		c.Write(hello("allowed.example.org"))
		conns = append(conns, c)
		c = w.mustDial("room", "tcp", testnet.Allowed+":80")
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
		conns = append(conns, c, w.mustDial("room", "tcp", "198.51.100.200:9000"))
		c = w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, "CONNECT allowed.example.org:9000 HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
		return append(conns, c)
	}
	conns := open()
	for range conns {
		<-dialling
	}
	// What each is told of now is a policy without its line.
	q := restricted(t, "other.example.org")
	q.Proxy = p.Proxy
	w.replace(q)
	close(on)
	for i, c := range conns {
		c.SetDeadline(time.Now().Add(3 * time.Second))
		b, err := io.ReadAll(c)
		if !errors.Is(err, unix.ECONNRESET) || len(b) > len("HTTP/1.1 200 Connection established\r\n\r\n") {
			t.Errorf("connection %d: %q, %v", i, b, err)
		}
	}
	// The control: without a change all are carried.
	w.replace(firewall.Policy{Rooms: p.Rooms, Proxy: p.Proxy})
	for i, c := range open() {
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			t.Errorf("control %d: %v", i, err)
		}
	}
}

// hello is the ClientHello that crypto/tls sends.
func hello(name string) []byte {
	near, far := net.Pipe()
	go tls.Client(near, &tls.Config{ServerName: name}).Handshake()
	b := make([]byte, 16<<10)
	n, _ := far.Read(b)
	far.Close()
	return b[:n]
}

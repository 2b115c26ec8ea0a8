package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestB60_Sequences: what comes on one connection in any order, a tunnel after a
// request too, costs that connection at most.
func TestB60_Sequences(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", testnet.Allowed+"/32:80"))
	messages := []string{
		"GET http://allowed.example.org/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
		"POST http://allowed.example.org/ HTTP/1.1\r\nHost: allowed.example.org\r\nContent-Length: 1\r\n\r\nx",
		"GET http://denied.example.org/ HTTP/1.1\r\nHost: denied.example.org\r\n\r\n",
		"CONNECT allowed.example.org:80 HTTP/1.1\r\nHost: allowed.example.org:80\r\n\r\n",
		"CONNECT " + testnet.Allowed + ":80 HTTP/1.1\r\nHost: " + testnet.Allowed + ":80\r\n\r\n",
		"CONNECT allowed.example.org:443 HTTP/1.1\r\nHost: allowed.example.org:443\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
	}
	buf := make([]byte, 4096)
	for i := range messages {
		for j := range messages {
			for k := range messages {
				c := w.mustDial("room", "tcp", explicitAddr)
				for _, at := range []int{i, j, k} {
					c.SetDeadline(time.Now().Add(50 * time.Millisecond))
					if _, err := io.WriteString(c, messages[at]); err != nil {
						break
					}
					if _, err := c.Read(buf); err != nil {
						break
					}
				}
				c.Close()
			}
		}
	}
	w.settled(t)
}

// TestB60_EndlessInformational: a server that sends informational responses without
// end loses its connection, and one that sends a few doesn't.
func TestB60_EndlessInformational(t *testing.T) {
	for _, version := range []string{"1.0", "1.1"} {
		t.Run("HTTP "+version, func(t *testing.T) {
			const at = "198.51.100.201:9103"
			w := newWorld(t, restricted(t, "198.51.100.201/32:9103"))
			l := w.listenOutside(at)
			serve := func(informational int) (status string) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					c.SetDeadline(time.Now().Add(10 * time.Second))
					if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
						return
					}
					for i := 0; informational < 0 || i < informational; i++ {
						if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
							return
						}
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}()
				c := w.mustDial("room", "tcp", explicitAddr)
				defer c.Close()
				c.SetDeadline(time.Now().Add(10 * time.Second))
				io.WriteString(c, "GET http://"+at+"/ HTTP/"+version+"\r\nHost: "+at+"\r\n\r\n")
				all, err := io.ReadAll(c)
				if e, ok := err.(net.Error); ok && e.Timeout() && !strings.Contains(string(all), " 200 ") {
					t.Error("the connection is still carried")
				}
				<-ended
				if strings.Contains(string(all), " 200 ") {
					return "200"
				}
				return "none"
			}
			if got := serve(3); got != "200" {
				t.Errorf("after 3 of them: %s, want 200", got)
			}
			if got := serve(-1); got != "none" {
				t.Errorf("without end: %s, want none", got)
			}
		})
	}
}

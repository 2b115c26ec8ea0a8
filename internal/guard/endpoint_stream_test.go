package guard

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a host sends by TLS reaches the client before the host sends more, whatever its length:
// a streaming API isn't buffered.
func TestEndpointStreams(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	parts := []string{"x", strings.Repeat("y", 100<<10) + "!", "z", strings.Repeat("0123456789abcdef", 4<<10), "end"}
	next := make(chan struct{})
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for _, part := range parts {
			io.WriteString(rw, part)
			rw.(http.Flusher).Flush()
			select {
			case <-next:
			case <-time.After(10 * time.Second):
				return
			}
		}
	}))
	c := w.mustDial("room", "tcp", apiAddr)
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: 127.0.0.1:600\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		got := make([]byte, len(part))
		if n, err := io.ReadFull(resp.Body, got); err != nil || string(got) != part {
			t.Fatalf("part %d: %d bytes of %d, %v", i, n, len(part), err)
		}
		next <- struct{}{}
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

//go:build linux

package room

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// TestEndpointListener: an endpoint's port is the guard's at 127.0.0.1 alone, no worker can
// take it (B22), and connections that were made without a guard wait for the next (B29).
func TestEndpointListener(t *testing.T) {
	for kind, start := range map[string]func(testing.TB) *testRoom{
		"nf_tables": func(t testing.TB) *testRoom { return startRoom(t) },
		"anyip":     func(t testing.TB) *testRoom { return anyIPRoom(t, nil) },
	} {
		t.Run(kind, func(t *testing.T) {
			r := start(t)
			port := strconv.Itoa(firewall.FirstEndpoint)
			r.expect(1000, "dial tcp4 127.0.0.1 "+port, "ECONNREFUSED")
			first := r.client()
			f, err := first.Listen(firewall.FirstEndpoint)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			first.Close()
			r.expect(1000, "dial tcp4 127.0.0.1 "+port, "ok")
			r.expect(1000, "dial tcp6 ::1 "+port, "ECONNREFUSED")
			for _, to := range outside {
				r.expect(1000, "dial tcp "+to+" "+port, "ECONNREFUSED")
			}
			for _, uid := range []int{1000, 0} {
				r.expect(uid, "bind tcp 127.0.0.1 "+port, "EACCES")
			}
			c := r.client()
			if f, err = c.Listen(firewall.FirstEndpoint); err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			l, err := net.FileListener(f)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Second))
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("the connection that waited: %v", err)
			}
			if dialled := conn.LocalAddr(); dialled.String() != "127.0.0.1:"+port {
				t.Errorf("dialled %v", dialled)
			}
			for _, port := range []int{firewall.FirstEndpoint - 1, firewall.LastEndpoint + 1, firewall.PortProxy, 8080} {
				if _, err := c.Listen(port); err == nil || !strings.Contains(err.Error(), "not one of endpoints") {
					t.Errorf("port %d: %v", port, err)
				}
			}
			for i := 1; i < firewall.MaxEndpoints; i++ {
				f, err := c.Listen(firewall.FirstEndpoint + i)
				if err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
			if _, err := c.Listen(firewall.LastEndpoint); err == nil {
				t.Error("there is no end of listeners")
			}
		})
	}
}

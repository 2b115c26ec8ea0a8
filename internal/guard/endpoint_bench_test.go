package guard

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// BenchmarkEndpoint prints the rows of the speed table about endpoints: TLS to a host direct
// from the guard's own namespace, through the guard by an ordinary line, and plain HTTP to an
// endpoint with a credential, whose guard sends on by TLS. The ways take turns, and the
// median of each counts.
func BenchmarkEndpoint(b *testing.B) {
	const ordinary = "ordinary.example.org"
	p := restricted(b, ordinary)
	line := at(b, "api 600 allowed.example.org", "GET,HEAD *")
	line.Endpoint.Credential = "key"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, line)
	w := apiWorld(b, p)
	w.in.Answer(ordinary, testnet.A(testnet.Allowed))
	leaseAlways(w, b)

	secure := func(c net.Conn, err error, name string) net.Conn {
		check(b, err)
		c.SetDeadline(time.Now().Add(time.Minute))
		return tls.Client(c, &tls.Config{ServerName: name, RootCAs: w.in.Roots()})
	}
	ways := []struct {
		name, host string
		dial       func() net.Conn
	}{
		{"direct", ordinary, func() (c net.Conn) {
			var err error
			_ = w.outside.Do(func() error { c, err = net.Dial("tcp", testnet.Allowed+":443"); return nil })
			return secure(c, err, ordinary)
		}},
		{"line", ordinary, func() net.Conn {
			c, err := w.dial("room", "tcp", testnet.Allowed+":443")
			return secure(c, err, ordinary)
		}},
		{"endpoint", apiAddr, func() net.Conn {
			c, err := w.dial("room", "tcp", apiAddr)
			check(b, err)
			c.SetDeadline(time.Now().Add(time.Minute))
			return c
		}},
	}
	buf := make([]byte, 64<<10)
	get := func(c net.Conn, br *bufio.Reader, host, path string, want int64) {
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host)
		resp, err := http.ReadResponse(br, nil)
		check(b, err)
		// As a program that stores it reads: io.Discard alone would read 8 KiB at a time.
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf); err != nil || resp.StatusCode != 200 || n < want {
			b.Fatalf("%s: %s, %d bytes, %v", path, resp.Status, n, err)
		}
	}
	for _, x := range []struct {
		name, path string
		count      int
		size       int64
	}{{"first-byte", "/bytes/1", 1, 1}, {"throughput", "/bytes/268435456", 1, 256 << 20}, {"requests", "/bytes/1", 1000, 1}} {
		b.Run(x.name, func(b *testing.B) {
			took := make([][]time.Duration, len(ways))
			for b.Loop() {
				for i, way := range ways {
					start := time.Now()
					c := way.dial()
					br := bufio.NewReader(c)
					for range x.count {
						get(c, br, way.host, x.path, x.size)
					}
					took[i] = append(took[i], time.Since(start))
					c.Close()
				}
			}
			for i, way := range ways {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2].Nanoseconds()), way.name+"-ns")
			}
		})
	}
}

// leaseAlways leases the credential of the endpoint, and renews it, until the benchmark ends.
func leaseAlways(w *world, b *testing.B) {
	broker, lines := w.attach()
	if len(lines) != 1 {
		b.Fatalf("lines: %+v", lines)
	}
	l := &lease.Lease{Line: lines[0], Generation: 1, Header: "Authorization"}
	stop := make(chan struct{})
	b.Cleanup(func() { close(stop) })
	go func() {
		for {
			l.Value = lease.Value(canary)
			if lease.Write(broker.c, l) != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(lease.Lasting / 3):
			}
		}
	}()
	for end := time.Now().Add(5 * time.Second); ; {
		if resp, _ := w.send(apiAddr, "GET /bytes/1 HTTP/1.1\r\nHost: 127.0.0.1:600\r\n\r\n"); resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			b.Fatal("the endpoint has no credential")
		}
	}
}

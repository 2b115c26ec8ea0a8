package guard

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestNoPrivilege: the guard holds no capability and isn't root, and needs
// neither.
func TestNoPrivilege(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.guard.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "Uid:\t65532\t65532\t65532\t65532\n"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Error(err)
	}
}

// rss is the guard's memory in MiB.
func (w *world) rss() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.guard.cmd.Process.Pid))
	if err != nil {
		w.Fatal(err)
	}
	_, s, _ := strings.Cut(string(b), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(s)[0])
	if err != nil {
		w.Fatal(err)
	}
	return float64(kb) / 1024
}

// TestManyConnections: more than the limit wait, and are served when others
// end; nothing is refused.
func TestManyConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	limit := connLimit() // the guard's too: it has the same limits
	w := newWorld(t, restricted(t, "198.51.100.192/26:9000"))
	const more = 200
	conns := make([]net.Conn, 0, limit+more)
	for range MaxConns + more {
		c := w.mustDial("room", "tcp", "198.51.100.200:9000")
		io.WriteString(c, "x")
		conns = append(conns, c)
	}
	one := make([]byte, 1)
	answered := 0
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if answered < limit {
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
		}
		if _, err := c.Read(one); err == nil {
			answered++
		} else if !os.IsTimeout(err) {
			t.Fatalf("after %d: %v", answered, err)
		} else {
			break
		}
	}
	if answered != limit {
		t.Errorf("%d served at once, want %d", answered, limit)
	}
	t.Logf("guard: %.1f MiB with %d connections", w.rss(), answered)
	for _, c := range conns[:answered] {
		c.Close()
	}
	for _, c := range conns[answered:] {
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(one); err != nil {
			t.Fatalf("one that waited: %v", err)
		}
	}
}

// TestFloodIsCounted: denials come faster than anybody reads; none is lost
// without being counted, and an allowed connection still works.
func TestFloodIsCounted(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	c := w.mustDial("room", "udp", "198.51.100.92:5000")
	const n = 20_000
	sent := 0
	for range n {
		if _, err := c.Write([]byte("x")); err != nil {
			sent++ // refused at once, which is what is counted
		}
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Error(err)
	}
	for range 10 { // show a gap at the end, once the guard has caught up
		time.Sleep(100 * time.Millisecond)
		c.Write([]byte("x"))
	}
	w.guard.eventually(sent+10, "denied packets", func(e event) bool {
		return e.Kind == "kernel" && (e.Address == "198.51.100.92" || e.Reason == "lost")
	})
}

// TestTemplates: a rule with a variable gets its value from the guard's
// environment; B45.
func TestTemplates(t *testing.T) {
	p := restricted(t)
	p.Rooms[0].Allow = []firewall.Rule{{Template: "${DB:-allowed.example.org}", Ports: []firewall.PortRange{{First: 443, Last: 443}}, Line: "workshop.yaml:9"}}
	w := newWorld(t, p)
	b, _ := os.ReadFile(filepath.Join(w.dir, "policy", "policy.json"))
	if !bytes.Contains(b, []byte("${DB:-")) {
		t.Fatalf("no template in the policy: %s", b)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Error(err)
	}
}

// BenchmarkGuard prints the rows of the speed table: through the guard, and
// direct from the guard's own namespace.
func BenchmarkGuard(b *testing.B) {
	p := restricted(b, "allowed.example.org", "198.51.100.192/26:9000", "198.51.100.10/32:80")
	// Names under a wildcard have a budget, those of mode open have none.
	p.Rooms = append(p.Rooms, firewall.RoomPolicy{Room: "open", Mode: firewall.Open})
	w := newWorld(b, p)
	dialOut := func(network, addr string) net.Conn {
		var c net.Conn
		if err := w.outside.Do(func() (err error) { c, err = net.Dial(network, addr); return err }); err != nil {
			b.Fatal(err)
		}
		return c
	}
	dialIn := func(network, addr string) net.Conn { c, err := w.dial("room", network, addr); check(b, err); return c }
	ways := []struct {
		name string
		dial func(network, addr string) net.Conn
	}{{"direct", dialOut}, {"guard", dialIn}}

	for _, way := range ways {
		b.Run("dns/"+way.name, func(b *testing.B) {
			c := way.dial("udp", testnet.DNS+":53")
			defer c.Close()
			q, _ := new(dns.Msg).SetQuestion("allowed.example.org.", dns.TypeA).Pack()
			askAll(b, c, func() []byte { return q })
		})
	}
	for _, way := range ways {
		b.Run("connect+byte/"+way.name, func(b *testing.B) {
			one := make([]byte, 1)
			for b.Loop() {
				c := way.dial("tcp", "198.51.100.200:9000")
				c.Write(one)
				_, err := c.Read(one)
				check(b, err)
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		})
	}
	for _, way := range ways {
		b.Run("throughput/"+way.name, func(b *testing.B) {
			const size = 256 << 20
			b.SetBytes(size)
			for b.Loop() {
				c := way.dial("tcp", testnet.Allowed+":80")
				fmt.Fprintf(c, "GET /bytes/%d HTTP/1.1\r\nHost: allowed.example.org\r\nConnection: close\r\n\r\n", size)
				c.SetDeadline(time.Now().Add(time.Minute))
				n, err := io.Copy(io.Discard, c)
				check(b, err)
				if n < size {
					b.Fatalf("%d bytes", n)
				}
				c.Close()
			}
		})
	}
	// last, because it fills the cache
	misses := 0
	for _, way := range ways {
		b.Run("dns-miss/"+way.name, func(b *testing.B) {
			c := way.dial("udp", testnet.DNS+":53")
			if way.name == "guard" {
				c.Close()
				c = w.mustDial("open", "udp", testnet.DNS+":53")
			}
			defer c.Close()
			c.SetDeadline(time.Time{})
			askAll(b, c, func() []byte {
				misses++
				q, _ := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.miss.example.org.", misses), dns.TypeA).Pack()
				return q
			})
		})
	}
}

// askAll sends a question at a time and also reports what one in a hundred takes
// at least.
func askAll(b *testing.B, c net.Conn, question func() []byte) {
	var took []time.Duration
	buf := make([]byte, 1500)
	for b.Loop() {
		q := question()
		start := time.Now()
		c.Write(q)
		_, err := c.Read(buf)
		check(b, err)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

func check(b testing.TB, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

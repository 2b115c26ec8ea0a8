package guard

import (
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// TestB31_UpstreamOfTheRepository: a policy that makes a service of the guard's
// own network the upstream proxy reads nothing of it, by address, by name or by
// what a resolver answers, unless the user named it. In the namespace engine that
// network is the machine's.
func TestB31_UpstreamOfTheRepository(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org"))
	var own netip.Addr
	var asked atomic.Int32
	err := w.outside.Do(func() error {
		l, err := net.Listen("tcp", ":18080")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go testnet.Serve(l, func(c net.Conn) {
			asked.Add(1)
			io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
		})
		addrs, err := net.InterfaceAddrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
				own = p.Addr()
			}
		}
		return err
	})
	if err != nil || !own.IsValid() {
		t.Fatal(own, err)
	}
	w.in.Answer("here.example.org", testnet.A("127.0.0.1"))
	w.startRooms()
	for _, tt := range []struct {
		name, proxy, dns string
		user             string
		failed, reached  bool
	}{
		{name: "loopback", proxy: "http://127.0.0.1:18080", failed: true},
		{name: "loopback, IPv6", proxy: "http://[::1]:18080", failed: true},
		{name: "this machine", proxy: "http://0.0.0.0:18080", failed: true},
		{name: "metadata as a resolver", dns: "169.254.169.254", failed: true},
		{name: "loopback as a resolver", dns: "127.0.0.53", failed: true},
		{name: "an address of the machine", proxy: "http://" + own.String() + ":18080"},
		{name: "a name that leads here", proxy: "http://here.example.org:18080"},
		{name: "another upstream of the user's", proxy: "http://127.0.0.1:18080", user: "127.0.0.1:18081", failed: true},
		{name: "the user's loopback", proxy: "http://127.0.0.1:18080", user: "127.0.0.1:18080", reached: true},
		{name: "the user's address of the machine", proxy: "http://" + own.String() + ":18080", user: own.String() + ":18080", reached: true},
		{name: "the user's resolver on loopback", dns: "127.0.0.53", user: "127.0.0.53:53"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.TB = t
			p := w.policy
			p.Proxy = tt.proxy
			if tt.dns != "" {
				p.Resolvers = []string{tt.dns}
			}
			if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(&p), 0o644); err != nil {
				t.Fatal(err)
			}
			w.env = []string{firewall.UserUpstreamsEnv + "=" + tt.user}
			asked.Store(0)
			w.launchGuard()
			defer w.guard.kill()
			select {
			case line := <-w.guard.ready:
				if failed := strings.HasPrefix(line, "FAILED"); failed != tt.failed {
					t.Fatalf("%s, want failed %v", line, tt.failed)
				}
				if tt.failed {
					return
				}
			case <-time.After(10 * time.Second):
				t.Fatal("neither READY nor FAILED")
			}
			if tt.proxy == "" {
				return
			}
			_, _ = w.tls("room", testnet.Allowed+":443", "allowed.example.org") // fails: nothing speaks TLS there
			if reached := asked.Load() > 0; reached != tt.reached {
				t.Errorf("reached: %v, want %v", reached, tt.reached)
			}
		})
	}
}

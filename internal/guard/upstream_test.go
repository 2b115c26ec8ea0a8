package guard

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
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

// TestUpstreamProxyIsNamed: the guard's log and its answer to the host name the
// upstream proxy that fails, and what it did; the target isn't blamed.
func TestUpstreamProxyIsNamed(t *testing.T) {
	w := buildWorld(t, restricted(t, "allowed.example.org", "*.wild.example.org", "here.example.org"))
	w.in.Answer("n.wild.example.org", testnet.A("198.51.100.12"))
	w.in.Answer("here.example.org", testnet.A("198.18.0.1"))
	w.startRooms()
	answers := func(addr, status string) {
		l := w.listenOutside(addr)
		go testnet.Serve(l, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, status)
			}
		})
	}
	answers("198.51.100.80:3128", "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
	answers("198.51.100.81:3128", "HTTP/1.1 200 ok\r\n\r\n")
	answers("198.51.100.82:3128", "SSH-2.0-\x1b[2J\r\n\r\n")
	for _, tt := range []struct{ name, proxy, want string }{
		{"no address", "proxy.example.net:3128", "can't be resolved"},
		{"nobody listens", "198.51.100.45:3128", "can't be connected to: connection refused"},
		{"credentials", "198.51.100.80:3128", "refuses CONNECT with 407: it wants credentials"},
		{"not a proxy", "198.51.100.82:3128", "answers CONNECT with something that isn't HTTP"},
		{"it connects", "198.51.100.81:3128", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.TB = t
			p := w.policy
			p.Proxy = "http://user:" + secret + "@" + tt.proxy
			if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(&p), 0o644); err != nil {
				t.Fatal(err)
			}
			w.startGuard()
			defer w.guard.kill()
			want := ""
			if tt.want != "" {
				want = "the upstream proxy " + tt.proxy + " " + tt.want
			}
			explain := func(host string, noLookUp bool) (x control.Explanation) {
				t.Helper()
				if err := w.host(control.Request{Op: control.OpExplain, Room: "room", Host: host, Port: 443, NoLookUp: noLookUp}, &x); err != nil {
					t.Fatal(err)
				}
				return x
			}
			if x := explain("allowed.example.org", false); !x.Allowed || x.Proxy != tt.proxy || x.ProxyError != want {
				t.Errorf("got %+v, want %q", x, want)
			}
			if x := explain("allowed.example.org", true); x.Proxy != "" {
				t.Errorf("it was tried: %+v", x)
			}
			for _, host := range []string{"here.example.org", "198.18.0.1"} { // an address of the guard's is refused before
				if x := explain(host, false); x.Allowed || x.Reason != "own-address" || x.Suggest != "" || x.Address != "198.18.0.1" || x.Proxy != "" {
					t.Errorf("%s: got %+v", host, x)
				}
			}
			if want == "" {
				return
			}
			for name, noted := range map[string]string{"allowed.example.org": "allowed.example.org", "n.wild.example.org": ""} { // a name that a worker may have made up isn't in the log
				_, _ = w.tls("room", testnet.Allowed+":443", name)
				w.guard.eventually(1, "what "+name+" met", func(e event) bool {
					return e.Verdict == "note" && e.Reason == "upstream-proxy" && e.Name == noted && strings.Contains(e.raw, `"why":"allowed, but `+want+`"`) && !strings.Contains(e.raw, secret)
				})
			}
		})
	}
}

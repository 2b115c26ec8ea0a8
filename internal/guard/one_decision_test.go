package guard

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// ways are how a connection for a name, to an address, comes to the guard, with
// the kind of its events.
var ways = []struct {
	name, kind string
	try        func(w *world, room, name, addr string) string
}{
	{"80", "http", func(w *world, room, name, addr string) string {
		return w.to(room, addr+":80", func(c net.Conn) string { return w.request(c, "http://"+name+"/", false) })
	}},
	{"443", "tls", func(w *world, room, name, addr string) string {
		return w.to(room, addr+":443", func(c net.Conn) string { return w.shake(c, name) })
	}},
	{"9000", "tcp", func(w *world, room, _, addr string) string {
		return w.to(room, addr+":9000", w.echo)
	}},
	{"GET http://name", "proxy", func(w *world, room, name, _ string) string {
		return w.request(w.mustDial(room, "tcp", explicitAddr), "http://"+name+"/", true)
	}},
	{"GET http://address", "proxy", func(w *world, room, _, addr string) string {
		return w.request(w.mustDial(room, "tcp", explicitAddr), "http://"+addr+"/", true)
	}},
	{"CONNECT name:80", "proxy", func(w *world, room, name, _ string) string {
		return w.connect(room, name+":80", func(c net.Conn) string { return w.request(c, "http://"+name+"/", false) })
	}},
	{"CONNECT name:443", "proxy", func(w *world, room, name, _ string) string {
		return w.connect(room, name+":443", func(c net.Conn) string { return w.shake(c, name) })
	}},
	{"CONNECT address:80", "proxy", func(w *world, room, name, addr string) string {
		return w.connect(room, addr+":80", func(c net.Conn) string { return w.request(c, "http://"+name+"/", false) })
	}},
	{"CONNECT address:443", "proxy", func(w *world, room, name, addr string) string {
		return w.connect(room, addr+":443", func(c net.Conn) string { return w.shake(c, name) })
	}},
	{"CONNECT address:9000", "proxy", func(w *world, room, _, addr string) string {
		return w.connect(room, addr+":9000", w.echo)
	}},
}

// to connects and returns what f says, or how connecting ended.
func (w *world) to(room, addr string, f func(net.Conn) string) string {
	c, err := w.dial(room, "tcp", addr)
	if err != nil {
		return outcome(err)
	}
	return f(c)
}

func (w *world) request(c net.Conn, url string, viaProxy bool) string {
	defer c.Close()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		w.Fatal(err)
	}
	if send := req.Write; viaProxy {
		err = req.WriteProxy(c)
	} else {
		err = send(c)
	}
	if err != nil {
		return outcome(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return outcome(err)
	}
	return strconv.Itoa(resp.StatusCode)
}

func (w *world) shake(c net.Conn, name string) string {
	defer c.Close()
	return outcome(tls.Client(c, &tls.Config{ServerName: name, RootCAs: w.in.Roots()}).Handshake())
}

func (w *world) echo(c net.Conn) string {
	defer c.Close()
	_, err := io.WriteString(c, "x")
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return outcome(err)
}

// connect says how CONNECT ended, and after 200 how what is inside did.
func (w *world) connect(room, target string, inside func(net.Conn) string) string {
	c := w.mustDial(room, "tcp", explicitAddr)
	io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	const ok = "HTTP/1.1 200 Connection established\r\n\r\n"
	head := make([]byte, len(ok))
	if _, err := io.ReadFull(c, head); err != nil {
		return outcome(err)
	}
	if string(head) != ok {
		c.Close()
		return string(head[9:12])
	}
	return "200, " + inside(c)
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return "reset"
	case strings.Contains(err.Error(), "access denied"), strings.Contains(err.Error(), "unrecognized name"), strings.Contains(err.Error(), "handshake failure"):
		return "alert"
	}
	return err.Error()
}

// TestOneDecision: each question about a connection has the same answer, whichever
// way it comes. A way that isn't listed in a question isn't asked it.
func TestOneDecision(t *testing.T) {
	p := restricted(t, "allowed.example.org", "other.example.org:8443", "linked.example.org")
	p.Rooms[0].Room = "names"
	day := firewall.Budget{Bytes: 1, Per: 24 * time.Hour}
	spent := allow(t, "allowed.example.org", "198.51.100.128/26:80,443,9000")
	spent[0].Upload, spent[1].Upload = day, day
	pinned := denyRule(t, "pinned.example.org")
	pinned.Ports = []firewall.PortRange{{First: 9000, Last: 9000}}
	denied := []firewall.Rule{denyRule(t, "denied.example.org"), {CIDR: netip.MustParsePrefix("198.51.100.66/32"), Ports: []firewall.PortRange{firewall.AllPorts}}, pinned}
	p.Rooms = append(p.Rooms,
		firewall.RoomPolicy{Room: "range", Mode: firewall.Restricted, Allow: allow(t, "198.51.100.0/25:80,443,9000"), Deny: denied},
		firewall.RoomPolicy{Room: "open", Mode: firewall.Open, Deny: denied},
		firewall.RoomPolicy{Room: "learning", Mode: firewall.Restricted, Allow: allow(t, "intranet")},
		firewall.RoomPolicy{Room: "spent", Mode: firewall.Restricted, Allow: spent},
	)
	w := newWorld(t, p)
	w.in.Answer("linked.example.org", testnet.A("198.18.0.2"))
	w.in.Answer("other.example.org", testnet.A(testnet.Allowed))
	for _, n := range []string{"intranet", "printer.local", "router", "x.onion", "10.113.0.203.in-addr.arpa", "localhost", "use-application-dns.net", firewall.ReadyName} {
		w.in.Answer(n, testnet.A(testnet.Allowed))
	}
	w.change(control.Request{Op: control.OpLearn, For: control.Duration(time.Hour), Rooms: []string{"learning"}})
	w.in.Answer("pinned.example.org", testnet.A("198.51.100.40"))
	w.resolve("open", "pinned.example.org")
	for _, to := range []string{testnet.Allowed, "198.51.100.130"} { // uses the budgets up
		w.to("spent", to+":80", func(c net.Conn) string { return w.request(c, "http://allowed.example.org/", false) })
	}
	for _, host := range []string{"allowed.example.org", "198.51.100.130"} { // explain says so too
		for _, noLookUp := range []bool{false, true} {
			var x control.Explanation
			if err := w.host(control.Request{Op: control.OpExplain, Room: "spent", Host: host, Port: 80, NoLookUp: noLookUp}, &x); err != nil || x.Allowed || x.Reason != "upload-budget" || x.Line == "" {
				t.Errorf("explain %s: %+v %v", host, x, err)
			}
		}
	}
	none := ""
	type count struct{ room, kind, reason string }
	want := map[count]int{{"spent", "http", "upload-budget"}: 2} // what used them up
	for _, q := range []struct {
		question, room, name, addr, reason string
		// outcomes in the order of ways; "" isn't tried
		outcomes [10]string
	}{
		//                                                                     80     443      9000     GET name GET addr C name80    C name443   C addr80    C addr443    C addr9000
		{"allowed name", "names", "allowed.example.org", testnet.Allowed, none, [10]string{"200", "ok", "", "200", "", "200, 200", "200, ok", "", "", ""}},
		{"allowed range", "range", "allowed.example.org", testnet.Allowed, none, [10]string{"200", "ok", "ok", "", "200", "", "", "200, 200", "200, ok", "200, ok"}},
		{"range, unknown name", "range", "unlisted.example.org", testnet.Allowed, none, [10]string{"200", "ok", "", "", "", "", "", "200, 200", "200, ok", ""}},
		{"open", "open", "allowed.example.org", testnet.Allowed, none, [10]string{"200", "ok", "ok", "200", "200", "200, 200", "200, ok", "200, 200", "200, ok", "200, ok"}},
		{"name not allowed", "names", "evil.example.net", testnet.Evil, "not-allowed", [10]string{"403", "alert", "", "403", "403", "403", "403", "403", "403", "403"}},
		{"port not allowed", "names", "other.example.org", testnet.Allowed, "port", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"denied name in a range", "range", "denied.example.org", testnet.Denied, "denied", [10]string{"403", "alert", "", "403", "", "403", "403", "200, 403", "200, alert", ""}},
		{"denied name, open", "open", "denied.example.org", testnet.Denied, "denied", [10]string{"403", "alert", "", "403", "", "403", "403", "200, 403", "200, alert", ""}},
		{"denied address, open", "open", "198.51.100.66", testnet.Evil, "denied", [10]string{"403", "", "reset", "403", "403", "403", "403", "403", "403", "403"}},
		{"denied name of the address", "open", "pinned.example.org", "198.51.100.40", "denied", [10]string{"", "", "reset", "", "", "", "", "", "", "403"}},
		{"metadata", "open", "169.254.169.254", "169.254.169.254", "metadata", [10]string{"403", "alert", "reset", "403", "403", "403", "403", "403", "403", "403"}},
		{"the guard itself", "open", "198.18.0.1", "198.18.0.1", "own-address", [10]string{"", "", "reset", "403", "403", "403", "403", "403", "403", "403"}},
		{"never-list behind a name", "names", "linked.example.org", testnet.Allowed, "gateway", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"budget of a name", "spent", "allowed.example.org", testnet.Allowed, "upload-budget", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"name, learning", "learning", "allowed.example.org", testnet.Allowed, none, [10]string{"200", "ok", "", "200", "", "200, 200", "200, ok", "", "", ""}},
		{"special name, learning", "learning", "printer.local", testnet.Allowed, "special-name", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"single label, learning", "learning", "router", testnet.Allowed, "special-name", [10]string{"403", "", "", "403", "", "403", "403", "", "", ""}},
		{"name of nobody, learning", "learning", "x.onion", testnet.Allowed, "special-name", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"what browsers ask, learning", "learning", "use-application-dns.net", testnet.Allowed, "doh", [10]string{"403", "alert", "", "403", "", "403", "403", "", "", ""}},
		{"line with a single label", "learning", "intranet", testnet.Allowed, none, [10]string{"200", "", "", "200", "", "200, 200", "", "", "", ""}},
		// In mode open, redirected connections go to the address that was dialled.
		{"special name, open", "open", "printer.local", testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"single label, open", "open", "router", testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"name of nobody, open", "open", "x.onion", testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"reverse look-up, open", "open", "10.113.0.203.in-addr.arpa", testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"localhost, open", "open", "localhost", testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"the room's own, open", "open", firewall.ReadyName, testnet.Allowed, "special-name", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"what browsers ask, open", "open", "use-application-dns.net", testnet.Allowed, "doh", [10]string{"", "", "", "403", "", "403", "403", "", "", ""}},
		{"special name by address, open", "open", "printer.local", testnet.Allowed, none, [10]string{"200", "", "", "", "", "", "", "200, 200", "", ""}},
		{"budget of a range", "spent", "198.51.100.130", "198.51.100.130", "upload-budget", [10]string{"reset", "", "reset", "403", "403", "403", "403", "403", "403", "403"}},
	} {
		t.Run(q.question, func(t *testing.T) {
			for i, way := range ways {
				if q.outcomes[i] == "" {
					continue
				}
				if got := way.try(w, q.room, q.name, q.addr); got != q.outcomes[i] {
					t.Errorf("%s: %s, want %s", way.name, got, q.outcomes[i])
				}
				if q.reason != none {
					want[count{q.room, way.kind, q.reason}]++
				}
			}
		})
	}
	for _, n := range []string{"printer.local", "router", "x.onion", "10.113.0.203.in-addr.arpa", "localhost", "use-application-dns.net", firewall.ReadyName} {
		if got := w.in.Asked(n); got != 0 {
			t.Errorf("%d questions for %s reached a resolver", got, n)
		}
	}
	// What a hello may lack, by redirection, in a tunnel to a name and in one to an
	// address: where only the name lets it pass, and where the address does beside
	// a deny line with a name.
	for _, q := range []struct {
		question string
		hello    func(net.Conn) string
		reason   string
		// outcomes of 443 and CONNECT name:443 by a name, of 443 and CONNECT
		// address:443 by a range
		outcomes [4]string
	}{
		{"no SNI", func(c net.Conn) string {
			return outcome(tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake())
		}, "no-sni", [4]string{"alert", "200, alert", "ok", "200, ok"}},
		{"not TLS", func(c net.Conn) string {
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
			_, err := c.Read(make([]byte, 1))
			return outcome(err)
		}, "not-tls", [4]string{"reset", "200, reset", "reset", "200, reset"}},
		{"ECH", func(c net.Conn) string {
			return outcome(tls.Client(c, &tls.Config{
				ServerName: "hidden.example.net", RootCAs: w.in.Roots(), MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, "allowed.example.org"),
			}).Handshake())
		}, "ech", [4]string{"alert", "200, alert", "alert", "200, alert"}},
	} {
		t.Run(q.question, func(t *testing.T) {
			for i, got := range []string{
				w.to("names", testnet.Allowed+":443", q.hello), w.connect("names", "allowed.example.org:443", q.hello),
				w.to("range", testnet.Allowed+":443", q.hello), w.connect("range", testnet.Allowed+":443", q.hello),
			} {
				if got != q.outcomes[i] {
					t.Errorf("%d: %s, want %s", i, got, q.outcomes[i])
				}
				if room, kind := []string{"names", "range"}[i/2], []string{"tls", "proxy"}[i%2]; q.reason != none && !strings.HasSuffix(got, "ok") {
					want[count{room, kind, q.reason}]++
				}
			}
		})
	}
	// Addresses that are written otherwise are none.
	for _, target := range []string{"[::ffff:198.51.100.10]:443", "[fe80::1%lo]:443", "0306.063.0144.012:443", "3325256714:443", "0xc6.0x33.0x64.0x0a:443", "198.51.100.10.:443", "198.51.25610:443"} {
		if got := w.connect("open", target, func(net.Conn) string { return "" }); got != "400" {
			t.Errorf("CONNECT %s: %s, want 400", target, got)
		}
	}
	w.liveDeny(t)
	for c, n := range want {
		w.guard.eventually(n, c.room+" "+c.kind+" "+c.reason, func(e event) bool {
			return e.Verdict == "deny" && e.Room == c.room && e.Kind == c.kind && e.Reason == c.reason
		})
	}
	if n := w.in.Packets("tcp", testnet.Denied, 0) + w.in.Packets("tcp", testnet.Evil, 0); n != 0 {
		t.Errorf("%d packets to denied hosts", n)
	}
}

// liveDeny: a name that is denied while a range carries connections that named it
// ends these, whichever way they came (B27).
func (w *world) liveDeny(t *testing.T) {
	t.Helper()
	for _, way := range []string{"443", "CONNECT address:443"} {
		host := "later" + strconv.Itoa(len(way)) + ".example.org"
		c := w.mustDial("range", "tcp", testnet.Allowed+":443")
		if way != "443" {
			c = w.mustDial("range", "tcp", explicitAddr)
			io.WriteString(c, "CONNECT "+testnet.Allowed+":443 HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
				t.Fatal(err)
			}
		}
		if err := tls.Client(c, &tls.Config{ServerName: host, RootCAs: w.in.Roots()}).Handshake(); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		deny := denyRule(t, host)
		w.change(control.Request{Op: control.OpChange, Changes: []firewall.Live{{Room: "range", Deny: true, Rule: deny}}})
		w.cut(c, 2*time.Second)
	}
}

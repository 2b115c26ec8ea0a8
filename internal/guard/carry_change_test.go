package guard

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// replace makes p the policy of the running guard.
func (w *world) replace(p firewall.Policy) (a control.Applied) {
	w.Helper()
	p.Version, p.Workshop, p.Resolvers = w.policy.Version, w.policy.Workshop, w.policy.Resolvers
	return w.change(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)})
}

// TestB27_Address: what ends isn't only what a name was allowed for. A connection
// goes by an address and by a budget too, and when the policy no longer has these,
// it is cut; those that nothing changed for go on.
func TestB27_Address(t *testing.T) {
	lines := []string{"allowed.example.org", "second.example.org", "198.51.100.192/26:9000", "198.51.100.128/26:9000"}
	w := newWorld(t, restricted(t, lines...))
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	tlsTo := func(name string) net.Conn {
		t.Helper()
		c, err := w.tls("room", testnet.Allowed+":443", name)
		if err != nil {
			t.Fatal(err)
		}
		return c.NetConn()
	}
	kept, second := tlsTo("allowed.example.org"), tlsTo("second.example.org")
	echo, counted := w.carried("room", "198.51.100.200:9000"), w.carried("room", "198.51.100.150:9000")

	// A range is denied that the name's address lies in.
	p := restricted(t, lines...)
	p.Rooms[0].Deny = []firewall.Rule{{CIDR: netip.MustParsePrefix("198.51.100.12/32"), Ports: []firewall.PortRange{firewall.AllPorts}, Line: "workshop.yaml:30"}}
	if a := w.replace(p); a.Cut != 1 {
		t.Errorf("%+v", a)
	}
	w.cut(second, time.Second)

	// A line gets a budget: what isn't counted can't go on by it.
	p.Rooms[0].Allow[3].Upload = firewall.Budget{Bytes: 100, Per: time.Hour}
	if a := w.replace(p); a.Cut != 1 {
		t.Errorf("%+v", a)
	}
	w.cut(counted, time.Second)
	counted = w.carried("room", "198.51.100.150:9000") // one byte of 100
	if a := w.replace(p); a.Cut != 0 {
		t.Errorf("the same again: %+v", a)
	}
	w.echoes(counted) // another

	// It is the line's through all policies, and the room's state shows it.
	p.Rooms[0].Allow = append(allow(t, "third.example.org"), p.Rooms[0].Allow...)
	w.replace(p)
	if b := w.state().Rooms[0].Budgets; len(b) != 1 || b[0].Used != 2 || b[0].Target != "198.51.100.128/26" {
		t.Errorf("%+v", b)
	}
	counted.Write(make([]byte, 98))
	io.ReadFull(counted, make([]byte, 98))
	w.refused("room", "198.51.100.150:9000")
	if a := w.replace(p); a.Cut != 0 {
		t.Errorf("one whose budget is just used up: %+v", a)
	}
	counted.Write([]byte("x"))
	w.cut(counted, time.Second)

	w.echoes(echo)
	kept.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := io.Copy(io.Discard, kept); errors.Is(err, unix.ECONNRESET) {
		t.Errorf("one that nothing changed for: %v", err)
	}
}

// TestLearnedOnly: learning opens names, and nothing that has none: on 443 there
// must be a hello whose name can be seen, in a tunnel the name that it is for.
func TestLearnedOnly(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	w.in.Answer("new.example.net", testnet.A("198.51.100.40"))
	w.in.Answer("evil.example.net", testnet.A("198.51.100.66"))
	w.change(control.Request{Op: control.OpLearn, For: control.Duration(time.Minute)})
	w.resolve("room", "new.example.net") // pinned
	c := w.mustDial("room", "tcp", "198.51.100.40:443")
	io.WriteString(c, "SSH-2.0-tunnel\r\n")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("not TLS on 443: %v", err)
	}
	if err := w.nameless("198.51.100.40:443"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("no name on 443: %v", err)
	}
	if _, status, _ := get(w, w.mustDial("room", "tcp", "198.51.100.40:80"), "http://198.51.100.40/"); status != 403 {
		t.Errorf("an address on 80: %d", status)
	}
	ask := func(target string) (net.Conn, int, string) {
		c := w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
		req, _ := http.NewRequest("CONNECT", "http://x", nil)
		resp, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil {
			t.Fatal(err)
		}
		b := []byte(nil)
		if resp.StatusCode != 200 {
			b, _ = io.ReadAll(resp.Body)
		}
		return c, resp.StatusCode, string(b)
	}
	if _, status, body := ask("198.51.100.40:443"); status != 403 {
		t.Errorf("CONNECT to an address: %d %s", status, body)
	}
	if _, status, body := ask("dns.google:443"); status != 403 {
		t.Errorf("CONNECT to a resolver: %d %s", status, body)
	}
	c, status, _ := ask("new.example.net:9000")
	if status != 200 {
		t.Errorf("CONNECT to a learned name: %d", status)
	}
	w.echoes(c)
	c, _, _ = ask("new.example.net:443")
	io.WriteString(c, "SSH-2.0-tunnel\r\n")
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("not TLS in a tunnel to 443: %v", err)
	}
	w.guard.eventually(1, "what suggest reads", func(e event) bool {
		return e.Verdict == "allow" && e.Reason == "learned" && e.Kind == "proxy" && e.Port == 9000 && e.Suggest == "new.example.net:9000" && e.Rule == ""
	})
	w.schema()
}

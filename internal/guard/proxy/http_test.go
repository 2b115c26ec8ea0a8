package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// A program shows the status line of a refused CONNECT, or the body, and a model
// reads it: what is refused and why, that it isn't worth a retry, and nothing of how
// to allow it.
func TestDenied(t *testing.T) {
	for _, c := range []struct {
		authority string
		decision  firewall.Decision
		want      string
	}{
		{"denied.example.org", firewall.Decision{Reason: firewall.ReasonName, Suggest: "denied.example.org"},
			"denied.example.org:443 is not allowed in this workshop: do not retry, tell the person"},
		{"allowed.example.org:22", firewall.Decision{Reason: firewall.ReasonPort, Suggest: "allowed.example.org:22"},
			"allowed.example.org:22 is not allowed in this workshop (with this port): do not retry, tell the person"},
		{"[2001:db8::1]:8443", firewall.Decision{Reason: firewall.ReasonDenied, Rule: &firewall.Rule{Line: "workshop.yaml:7"}},
			"[2001:db8::1]:8443 is not allowed in this workshop (by a deny line): do not retry, tell the person"},
		{"denied.example.org", firewall.Decision{Reason: firewall.ReasonDenied, Rule: &firewall.Rule{Line: firewall.LiveLine}},
			"denied.example.org:443 is not allowed in this workshop (denied by a live change): do not retry, tell the person"},
		{"localhost:3000", firewall.Decision{Reason: firewall.ReasonSpecial},
			"localhost:3000 is not allowed in this workshop (the worker's own loopback, reached without a proxy): do not retry, tell the person"},
		{"198.51.100.5:443", firewall.Decision{Reason: "on-link", Suggest: "{cidr: 198.51.100.5/32}"},
			"198.51.100.5:443 is not allowed in this workshop (a private address): do not retry, tell the person"},
		{"10.1.2.3:80", firewall.Decision{Reason: "private", Suggest: "{cidr: 10.1.2.3/32}"},
			"10.1.2.3:80 is not allowed in this workshop (a private address): do not retry, tell the person"},
	} {
		to, err := parseAuthority(c.authority, 443)
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		go func() {
			_ = new(Room).denied(near, to, c.decision, false)
			near.Close()
		}()
		resp, err := http.ReadResponse(bufio.NewReader(far), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.Status != "403 "+c.want || string(body) != "workshop: "+c.want+"\n"+whatIsOpen || resp.Header.Get("X-Workshop-Deny") != firewall.ToldReason(c.decision.Reason) || len(resp.Header) != 3 {
			t.Errorf("%s: %q, %v\n%s", c.authority, resp.Status, resp.Header, body)
		}
	}
}

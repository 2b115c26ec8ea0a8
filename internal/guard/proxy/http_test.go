package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// What a program shows of a refused CONNECT is the status line: it says what
// is refused, by what, and the command that allows it.
func TestDenied(t *testing.T) {
	for _, c := range []struct {
		authority      string
		decision       firewall.Decision
		status, inBody string
	}{
		{"denied.example.org", firewall.Decision{Reason: firewall.ReasonName, Suggest: "denied.example.org"},
			"403 denied.example.org:443 is not allowed in workshop.yaml; to allow it: workshop firewall allow denied.example.org --worker builder", "\n  - denied.example.org\n"},
		{"[2001:db8::1]:8443", firewall.Decision{Reason: firewall.ReasonDenied, Rule: &firewall.Rule{Line: "workshop.yaml:7"}},
			"403 [2001:db8::1]:8443 is not allowed: denied", "decided by workshop.yaml:7\n"},
		{"198.51.100.5:443", firewall.Decision{Reason: "on-link"},
			"403 198.51.100.5:443 is not allowed: on-link", "\nworkshop: on-link: another container, or a machine of the guard's own network; a line with a `cidr:` opens it\n"},
	} {
		to, err := parseAuthority(c.authority, 443)
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		go func() {
			_ = new(Room).denied(near, &policy.Room{RoomPolicy: firewall.RoomPolicy{Workers: []string{"builder"}}}, to, c.decision, false)
			near.Close()
		}()
		resp, err := http.ReadResponse(bufio.NewReader(far), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.Status != c.status || resp.Header.Get("X-Workshop-Deny") != c.decision.Reason || !strings.Contains(string(body), c.inBody) {
			t.Errorf("%s: %q, %v\n%s", c.authority, resp.Status, resp.Header, body)
		}
	}
}

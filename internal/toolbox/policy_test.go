//go:build linux

package toolbox

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

func hostRule(t *testing.T, host string, port uint16) firewall.Rule {
	t.Helper()
	p, err := firewall.ParseHostPattern(host)
	if err != nil {
		t.Fatal(err)
	}
	return firewall.Rule{Host: p, Ports: []firewall.PortRange{{First: port, Last: port}}}
}

// TestPolicyDialer: what fetch_url reaches without a guard is what a guard would
// let through, and the never-list holds on the address.
func TestPolicyDialer(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	in := testnet.New(t, testnet.Options{Near: ns})
	policy := func(mode firewall.Mode, deny ...firewall.Rule) []byte {
		return firewall.EncodePolicy(&firewall.Policy{Version: firewall.PolicyVersion, Workshop: "w", Rooms: []firewall.RoomPolicy{{
			Room: "room", Mode: mode, Workers: []string{"w"}, Deny: deny,
			Allow: []firewall.Rule{hostRule(t, "localhost", 80), {CIDR: netip.MustParsePrefix("198.51.100.0/25"), Ports: []firewall.PortRange{{First: 80, Last: 80}}}},
		}}})
	}
	dial := func(policy []byte, host string, port uint16) error {
		t.Helper()
		d, err := policyDialer(policy)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return ns.Do(func() error {
			c, err := d(ctx, host, port)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	if err := dial(policy(firewall.Restricted), testnet.Allowed, 80); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	for end := time.Now().Add(5 * time.Second); in.Conns(testnet.Allowed, 80) != 1; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what is allowed doesn't arrive")
		}
	}
	in.Reset()
	deny := firewall.Rule{CIDR: netip.MustParsePrefix(testnet.Denied + "/32"), Ports: []firewall.PortRange{{First: 1, Last: 65535}}}
	for _, c := range []struct {
		policy []byte
		host   string
		port   uint16
		says   string
	}{
		{nil, testnet.Allowed, 80, "no network"},
		{policy(firewall.Restricted), testnet.Allowed, 443, "port"},
		{policy(firewall.Restricted), "198.51.100.200", 80, "not-allowed"},
		{policy(firewall.Restricted), "allowed.example.org", 80, "not-allowed"},
		{policy(firewall.Restricted, deny), testnet.Denied, 80, "denied"},
		{policy(firewall.Restricted), "localhost", 80, "special-name"},
		{policy(firewall.Open), "127.0.0.1", 80, "loopback"},
		{policy(firewall.Open), "169.254.169.254", 80, "metadata"},
		{policy(firewall.Open), "::ffff:127.0.0.1", 80, "loopback"},
		{policy(firewall.Open), "10.0.0.1", 80, "private"},
	} {
		if err := dial(c.policy, c.host, c.port); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, port %d: %v, want %q", c.host, c.port, err, c.says)
		}
	}
	if n := in.Packets("tcp", testnet.Allowed, 443) + in.Packets("tcp", testnet.Denied, 80) + in.Packets("tcp", "198.51.100.200", 80); n > 0 {
		t.Errorf("%d packets went out", n)
	}
	if _, err := policyDialer([]byte(`{"version":1}`)); err == nil {
		t.Error("a policy without a room")
	}
}

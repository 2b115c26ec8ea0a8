package egress

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/events"
)

// TestNetworksComeAndGo is B26 and B31 on the machine's own network: what is near
// is closed from the moment that the kernel knows of it, and opens again when it
// goes: addresses, bridges, tunnels with their peers, routes of neighbours,
// addresses without an interface, gateways.
func TestNetworksComeAndGo(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
	_, err := exec.LookPath("ip")
	testutil.Require(t, err == nil, "ip is not installed")
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		run := func(line string) {
			t.Helper()
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v %s", line, err, out)
			}
		}
		// Addresses that the never-list alone would let through.
		l := &Local{}
		x := &Dialer{Local: l, Upstream: NewUpstream(&Local{})}
		open := firewall.RoomPolicy{Mode: firewall.Open}.Compile()
		expect := func(when string, want map[string]string) {
			t.Helper()
			for a, reason := range want {
				addr := netip.MustParseAddr(a)
				d := x.Check(open, open.Addr(addr, 443), addr, 443)
				if d.Allowed != (reason == "") || !d.Allowed && d.Reason != reason {
					t.Errorf("%s: %s: %+v, want %q", when, a, d, reason)
				}
			}
		}
		none := map[string]string{
			"198.51.100.1": "", "198.51.100.9": "", "198.51.100.65": "", "198.51.100.66": "", "198.51.100.130": "", "198.51.100.200": "", "2001:db8:1::1": "", "2001:db8:1::9": "", "2001:db8:2::7": "",
		}
		expect("at first", none)
		run("link add br0 type bridge")
		run("link add wg0 type veth peer name wg1")
		run("link set wg0 up")
		run("link set br0 up")
		expect("links alone", none)
		run("addr add 198.51.100.1/26 dev br0")
		run("addr add 2001:db8:1::1/64 dev br0 nodad")
		expect("a bridge", map[string]string{
			"198.51.100.1": events.ReasonOwn, "198.51.100.9": events.ReasonOnLink, "198.51.100.65": "",
			"2001:db8:1::1": events.ReasonOwn, "2001:db8:1::9": events.ReasonOnLink, "2001:db8:2::7": "",
		})
		run("addr add 198.51.100.65 peer 198.51.100.66 dev wg0")
		expect("a tunnel", map[string]string{"198.51.100.65": events.ReasonOwn, "198.51.100.66": events.ReasonOnLink, "198.51.100.67": ""})
		run("route add 198.51.100.128/26 dev br0")
		expect("neighbours", map[string]string{"198.51.100.130": events.ReasonOnLink, "198.51.100.200": ""})
		run("route add local 198.51.100.200/32 dev br0")
		run("route add local 2001:db8:2::/64 dev lo")
		expect("no interface's", map[string]string{"198.51.100.200": events.ReasonOwn, "2001:db8:2::7": events.ReasonOwn})
		run("route add 198.51.100.240/28 via 198.51.100.9")
		run("route add default dev br0")
		expect("a gateway", map[string]string{"198.51.100.9": events.ReasonGateway, "198.51.100.241": "", "2001:db8:3::1": ""})
		run("link del br0")
		run("link del wg0")
		run("route del local 2001:db8:2::/64 dev lo table local")
		expect("at last", none)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangesAreSeenOnce: each change is, and nothing is where there was none.
func TestChangesAreSeenOnce(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(func() error {
		c := watchChanges()
		if c == nil || c.any() {
			return errors.New("a change, or no watch")
		}
		for range 5 {
			if err := exec.Command("ip", "addr", "add", "198.51.100.1/32", "dev", "lo").Run(); err != nil {
				return err
			}
			if err := exec.Command("ip", "addr", "del", "198.51.100.1/32", "dev", "lo").Run(); err != nil {
				return err
			}
			if !c.any() || c.any() {
				return errors.New("a change isn't seen, or twice")
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if (*changes)(nil).any() {
		t.Error("without a watch there is a change")
	}
}

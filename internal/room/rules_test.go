//go:build linux

package room

import (
	"bufio"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// saved returns what iptables-save prints, without comments and counters.
func saved(out string) string {
	var b strings.Builder
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if line := s.Text(); !strings.HasPrefix(line, "#") {
			b.WriteString(counters.ReplaceAllString(line, "[0:0]") + "\n")
		}
	}
	return b.String()
}

var counters = regexp.MustCompile(`\[\d+:\d+\]`)

func fortyPorts() string {
	var s []string
	for i := range 40 {
		s = append(s, fmt.Sprint(2000+10*i))
	}
	return strings.Join(s, ",")
}

// TestRulesReadBack: what netlink wrote is what the generated project shows as
// rules.v4 and rules.v6, in the words of Debian's own programs, and restoring
// it gives the same again.
func TestRulesReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		ports string // that the guard tells; "" for none
		open  bool
	}{
		"web only":      {},
		"one port":      {ports: "22"},
		"ranges":        {ports: "22,1000-2000,8000-8010,65535"},
		"forty ports":   {ports: fortyPorts()},
		"open":          {open: true},
		"open and port": {ports: "5432", open: true},
		"every port":    {ports: "1-52,54-79,81-442,444-65535"},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if c.open {
				args = append(args, "--open")
			}
			r := startRoom(t, args...)
			o := firewall.RulesetOptions{Open: c.open}
			if c.ports != "" {
				o.Ports = r.redirect(c.ports)
			}
			want := firewall.NewRuleset(o)
			other := startRoom(t) // a second namespace, to restore into
			for family, program := range map[firewall.Family]string{firewall.V4: "iptables", firewall.V6: "ip6tables"} {
				out := r.command("", program+"-save")
				if diff := cmp.Diff(string(want.Text(family)), saved(out)); diff != "" {
					t.Errorf("%s-save differs (-want +got):\n%s", program, diff)
				}
				other.command(out, program+"-restore")
				if diff := cmp.Diff(saved(out), saved(other.command("", program+"-save"))); diff != "" {
					t.Errorf("restored rules differ:\n%s", diff)
				}
			}
		})
	}
}

// TestRedirectReplacesPorts: the port list changes in one transaction, and
// nothing else does.
func TestRedirectReplacesPorts(t *testing.T) {
	r := startRoom(t)
	c := r.client()
	for _, list := range []string{"22", "23,8000-8010", "", "22", fortyPorts()} {
		var ports []firewall.PortRange
		if list != "" {
			ports, _ = firewall.ParsePorts(list)
		}
		if _, err := c.Redirect(ports); err != nil {
			t.Fatal(err)
		}
		want := firewall.NewRuleset(firewall.RulesetOptions{Ports: ports})
		if diff := cmp.Diff(string(want.Text(firewall.V4)), saved(r.command("", "iptables-save"))); diff != "" {
			t.Errorf("%s: IPv4:\n%s", list, diff)
		}
		if diff := cmp.Diff(string(want.Text(firewall.V6)), saved(r.command("", "ip6tables-save"))); diff != "" {
			t.Errorf("%s: IPv6:\n%s", list, diff)
		}
	}
	// The three ports that have rules of their own are left out.
	if _, err := c.Redirect([]firewall.PortRange{{First: 40, Last: 100}}); err != nil {
		t.Fatal(err)
	}
	if out := r.command("", "iptables-save"); !strings.Contains(out, "--dport 54:79 ") || strings.Contains(out, "--dport 40:100") {
		t.Error("53 and 80 were redirected twice:\n" + out)
	}
	// As many as there may be, in one message to the kernel.
	var most []firewall.PortRange
	for i := range firewall.MaxRedirects {
		p := uint16(10000 + 20*i)
		most = append(most, firewall.PortRange{First: p, Last: p + 9})
	}
	if _, err := c.Redirect(most); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.command("", "ip6tables-save"), "--to-ports 535"); n != firewall.MaxRedirects {
		t.Errorf("%d rules", n)
	}
}

// TestRefusalNamesTheRule: an error of the kernel tells which rule it is
// about, and nothing of the transaction is done.
func TestRefusalNamesTheRule(t *testing.T) {
	r := startRoom(t)
	before := r.command("", "iptables-save")
	var err error
	r.inside(func() {
		b := newTransaction()
		b.rules(firewall.V4, "filter", firewall.ChainOut, []firewall.ChainRule{
			{Target: firewall.Target{Verdict: firewall.Accept}},
			{Target: firewall.Target{Reject: firewall.RejectReset}}, // needs -p tcp
			{Target: firewall.Target{Verdict: firewall.Drop}},
		})
		err = b.commit()
	})
	if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "IPv4 WS_OUT rule 2:") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(saved(before), saved(r.command("", "iptables-save"))); diff != "" {
		t.Errorf("the rules have changed:\n%s", diff)
	}
}

//go:build linux

package room

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables/expr"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// withoutNetfilter becomes a room on a kernel without netfilter by netlink.
func withoutNetfilter() int {
	runtime.LockOSThread()
	err := testutil.WithoutNetfilter()
	if err == nil {
		os.Setenv(roleVariable, "room")
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	fmt.Println(err)
	return 1
}

// A kernel without a module is refused by the room, naming all that is missing
// and the command that loads it.
func TestKernelLacksModules(t *testing.T) {
	r := startRoom(t)
	match := func(name string) []expr.Any { return []expr.Any{&expr.Match{Name: name, Info: xtNotDNAT()}} }
	target := func(name string) []expr.Any {
		return []expr.Any{&expr.Target{Name: name, Info: xtReject(firewall.V4, firewall.RejectReset)}}
	}
	for what, c := range map[string]struct {
		rules [][]expr.Any
		want  []string
	}{
		"a match":  {[][]expr.Any{match("nosuch")}, []string{"the kernel lacks xt_nosuch", "modprobe -a xt_nosuch)", "IPv4 WS_OUT rule 1: no such file or directory"}},
		"a target": {[][]expr.Any{target("NOSUCH")}, []string{"the kernel lacks xt_NOSUCH"}},
		"several, one of them in use": {
			[][]expr.Any{match("nosuch"), match("conntrack"), match("nosuch"), target("OTHER"), target("NFLOG")},
			[]string{"the kernel lacks xt_nosuch and xt_OTHER, ", "modprobe -a xt_nosuch xt_OTHER)"},
		},
	} {
		var err error
		r.inside(func() {
			b := newTransaction()
			for i, x := range c.rules {
				b.rule(firewall.V4, fmt.Sprintf("IPv4 %s rule %d", firewall.ChainOut, i+1), "filter", firewall.ChainOut, firewall.TCP, x)
			}
			err = b.commit()
		})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", what, err, want)
			}
		}
	}
}

// What the room uses, the kernel of this machine knows: the question that finds
// a missing one is answered.
func TestExtensionsAreKnown(t *testing.T) {
	r := startRoom(t)
	rules := firewall.NewRuleset(firewall.RulesetOptions{Ports: []firewall.PortRange{{First: 22, Last: 22}}})
	b := newTransaction()
	for _, f := range []firewall.Family{firewall.V4, firewall.V6} {
		for _, table := range rules.Tables(f) {
			for _, c := range table.Chains {
				b.rules(f, table.Name, c.Name, c.Rules)
			}
		}
	}
	var modules []string
	for _, x := range b.extensions {
		modules = append(modules, x.Module())
		if !slices.Contains(kernelsupport.Extensions(), x) {
			t.Errorf("a rule uses %+v, and nobody asks for it before", x)
		}
	}
	for _, x := range kernelsupport.Extensions() {
		if !slices.Contains(b.extensions, x) {
			t.Errorf("no rule uses %+v", x)
		}
	}
	r.inside(func() {
		if missing, err := kernelsupport.Missing(b.extensions); len(missing) > 0 || err != nil {
			t.Errorf("missing: %v, %v", missing, err)
		}
	})
	for _, want := range []string{"xt_conntrack", "xt_NFLOG", "xt_REDIRECT", "ipt_REJECT", "ip6t_REJECT", "xt_tcpudp"} {
		if !strings.Contains(strings.Join(modules, " "), want) {
			t.Errorf("no rule uses %s: %v", want, modules)
		}
	}
}

//go:build linux

package room

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// refuseNetfilter makes this process one on a kernel without netfilter by
// netlink, by a seccomp filter, and then becomes the room: socket(AF_NETLINK, …,
// NETLINK_NETFILTER) fails as it does there (netlink_create of
// net/netlink/af_netlink.c).
func refuseNetfilter() int {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
	}
	const args = 16 // of struct seccomp_data, after nr, arch and ip; the low half first
	filter := []unix.SockFilter{
		load(0), unless(unix.SYS_SOCKET, 5),
		load(args), unless(unix.AF_NETLINK, 3),
		load(args + 2*8), unless(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
			err = errno
		}
	}
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
	r.inside(func() {
		for _, x := range b.extensions {
			modules = append(modules, x.module())
			if err := x.known(); err != nil {
				t.Errorf("%+v: %v", x, err)
			}
		}
	})
	for _, want := range []string{"xt_conntrack", "xt_NFLOG", "xt_REDIRECT", "ipt_REJECT", "ip6t_REJECT", "xt_tcpudp"} {
		if !strings.Contains(strings.Join(modules, " "), want) {
			t.Errorf("no rule uses %s: %v", want, modules)
		}
	}
}

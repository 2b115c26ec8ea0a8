package hostfirewall

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

const bridgeName = "br-0123456789ab"

// lab is a machine with a bridge, on which a guard and a neighbour are, and with a link
// to everywhere else. Each is a network namespace.
type lab struct {
	testing.TB
	machine, guard, neighbour, elsewhere *testnet.NS
	path                                 string // where the programs are
}

// flavours are the ways to load rules.
var flavours = []struct {
	name  string
	tool  Tool
	multi string // xtables' program of that name
}{
	{"iptables-nft", IPTables, "xtables-nft-multi"},
	{"iptables-legacy", IPTables, "xtables-legacy-multi"},
	{"nftables", NFTables, ""},
}

func newLab(t testing.TB, multi string) *lab {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
	_, err := exec.LookPath("nft")
	testutil.Require(t, err == nil, "nft isn't there: scripts/need nft=nftables")
	l := &lab{TB: t, path: t.TempDir() + ":/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, of := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			if multi == "" {
				continue
			}
			program := "/usr/sbin/" + multi
			if _, err := os.Stat(program); err != nil {
				testutil.Require(t, false, program+" isn't there: scripts/need iptables=iptables")
			}
			dir, _, _ := strings.Cut(l.path, ":")
			if err := os.Symlink(program, filepath.Join(dir, of+verb)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, ns := range []**testnet.NS{&l.machine, &l.guard, &l.neighbour, &l.elsewhere} {
		var err error
		if *ns, err = testnet.NewNS(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*ns).Close() })
	}
	for _, ns := range []*testnet.NS{l.machine, l.elsewhere} {
		l.sh(ns, `echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding`)
	}
	l.sh(l.machine, fmt.Sprintf("ip link add %[1]s type bridge; ip addr add 10.213.1.1/24 dev %[1]s; ip -6 addr add 2001:db8:9::1/64 dev %[1]s nodad; ip link set %[1]s up", bridgeName))
	l.join("guard0", l.guard, "10.213.1.2", "2001:db8:9::2")
	l.join("neighbour0", l.neighbour, "10.213.1.3", "2001:db8:9::3")
	l.veth("out0", l.elsewhere)
	l.sh(l.machine, `ip addr add 198.18.0.1/30 dev out0; ip -6 addr add 2001:db8:ffff::1/64 dev out0 nodad; ip link set out0 up
		ip route add default via 198.18.0.2; ip -6 route add default via 2001:db8:ffff::2`)
	l.sh(l.elsewhere, `ip addr add 198.18.0.2/30 dev eth0; ip -6 addr add 2001:db8:ffff::2/64 dev eth0 nodad; ip link set eth0 up
		ip route add default via 198.18.0.1; ip -6 route add default via 2001:db8:ffff::1
		ip route add local 198.51.100.0/24 dev lo; ip route add local 10.20.0.0/16 dev lo; ip route add local 10.99.0.0/16 dev lo; ip route add local 169.254.0.0/16 dev lo; ip route add local 100.64.0.0/10 dev lo
		ip -6 route add local 2001:db8:1::/48 dev lo; ip -6 route add local fd12::/16 dev lo; ip -6 route add local fd99::/16 dev lo`)
	for _, port := range []string{"22", "53", "443", "5432", "20001"} {
		for _, ns := range []*testnet.NS{l.elsewhere, l.guard, l.machine} {
			l.listen(ns, port)
		}
	}
	l.listen(l.machine, "8080")
	l.settles()
	return l
}

// veth joins a namespace, whose end is eth0, to the machine.
func (l *lab) veth(name string, far *testnet.NS) {
	l.Helper()
	sleep := exec.Command("sleep", "600") // a name of the namespace for ip
	if err := far.Start(sleep); err != nil {
		l.Fatal(err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	l.sh(l.machine, fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", name, sleep.Process.Pid))
}

// join puts a namespace on the bridge.
func (l *lab) join(name string, far *testnet.NS, addr4, addr6 string) {
	l.Helper()
	l.veth(name, far)
	l.sh(l.machine, fmt.Sprintf("ip link set %s master %s up", name, bridgeName))
	l.sh(far, fmt.Sprintf(`ip addr add %s/24 dev eth0; ip -6 addr add %s/64 dev eth0 nodad; ip link set eth0 up
		ip route add default via 10.213.1.1; ip -6 route add default via 2001:db8:9::1`, addr4, addr6))
}

// settles waits until addresses of IPv6 are found on the links.
func (l *lab) settles() {
	l.Helper()
	testutil.Eventually(l, "the guard reaches elsewhere over IPv6", func() bool { return l.dials(l.guard, 0, "[2001:db8:1::10]:443") })
}

// try runs a script in a namespace.
func (l *lab) try(ns *testnet.NS, script string, env ...string) (out string, err error) {
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Env = append(append(os.Environ(), "PATH="+l.path), env...)
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, &b
	if err = ns.Start(cmd); err == nil {
		err = cmd.Wait()
	}
	return b.String(), err
}

func (l *lab) sh(ns *testnet.NS, script string) string {
	l.Helper()
	out, err := l.try(ns, script)
	if err != nil {
		l.Fatalf("%s\n%v: %s", script, err, out)
	}
	return out
}

// listen serves a port of TCP on all addresses of a namespace.
func (l *lab) listen(ns *testnet.NS, port string) {
	l.Helper()
	err := ns.Do(func() error {
		x, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return err
		}
		l.Cleanup(func() { x.Close() })
		go func() {
			for {
				c, err := x.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
}

// dials reports whether a connection over TCP is made, by a user with a UID.
func (l *lab) dials(ns *testnet.NS, uid int, to string) bool {
	l.Helper()
	open := false
	err := ns.Do(func() error {
		if uid != 0 { // of this thread alone, which ends with the call
			if _, err := unix.SetfsuidRetUid(uid); err != nil {
				return err
			}
		}
		d := net.Dialer{Timeout: 700 * time.Millisecond}
		c, err := d.DialContext(context.Background(), "tcp", to)
		if open = err == nil; open {
			c.Close()
		}
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
	return open
}

// asks reports whether a datagram arrives elsewhere.
func (l *lab) asks(ns *testnet.NS, to string) bool {
	l.Helper()
	at := netip.MustParseAddrPort(to)
	var far *net.UDPConn
	if err := l.elsewhere.Do(func() (err error) { far, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); return err }); err != nil {
		l.Fatal(err)
	}
	defer far.Close()
	_ = ns.Do(func() error {
		c, err := net.Dial("udp", to)
		if err == nil {
			_, err = c.Write([]byte("?"))
			c.Close()
		}
		return err
	})
	_ = far.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, err := far.Read(make([]byte, 8))
	return err == nil
}

// policyCounts are how many packets had the policy of a chain.
var policyCounts = regexp.MustCompile(`\[\d+:\d+\]`)

// saved is all rules that the machine has.
func (l *lab) saved(tool Tool) string {
	l.Helper()
	if tool == NFTables {
		return l.sh(l.machine, "nft list ruleset")
	}
	var lines []string
	for line := range strings.Lines(l.sh(l.machine, "iptables-save; ip6tables-save")) {
		if !strings.HasPrefix(line, "#") { // the time
			lines = append(lines, policyCounts.ReplaceAllString(line, ""))
		}
	}
	return strings.Join(lines, "")
}

// load loads what is exported, as its header says.
func (l *lab) load(tool Tool, text string, env ...string) (string, error) {
	l.Helper()
	file := filepath.Join(l.TempDir(), "exported")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	if tool == NFTables {
		return l.try(l.machine, "nft -f - <"+file, env...)
	}
	return l.try(l.machine, "sh <"+file, env...)
}

package testnet

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// joined is a test internet joined to a namespace of the test's own.
func joined(t *testing.T) (*Internet, *NS) {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "needs root (network namespaces)")
	ns, err := NewNS()
	if err != nil {
		testutil.Require(t, false, err.Error())
	}
	t.Cleanup(func() { ns.Close() })
	return New(t, Options{Near: ns}), ns
}

func dial(t *testing.T, ns *NS, network, addr string) net.Conn {
	t.Helper()
	var c net.Conn
	err := ns.Do(func() (err error) { c, err = net.DialTimeout(network, addr, 2*time.Second); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(3 * time.Second))
	return c
}

func TestServersAnswerAtEveryAddressAndCount(t *testing.T) {
	in, ns := joined(t)
	addrs := []string{Allowed, Evil}
	if in.IPv6 {
		addrs = append(addrs, Allowed6, Evil6)
	} else {
		t.Log("no IPv6 here")
	}
	for _, a := range addrs {
		c := tls.Client(dial(t, ns, "tcp", net.JoinHostPort(a, "443")), &tls.Config{ServerName: "x.example.org", RootCAs: in.Roots()})
		req, _ := http.NewRequest("GET", "https://x.example.org/p", nil)
		if err := req.Write(c); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil {
			t.Fatal(err)
		}
		var e Echo
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Server != a || e.SNI != "x.example.org" || e.Host != "x.example.org" || e.Port != 443 {
			t.Errorf("echo from %s: %+v", a, e)
		}
		if n := in.Conns(a, 443); n != 1 {
			t.Errorf("connections at %s: %d, want 1", a, n)
		}
		if in.Packets("tcp", a, 443) == 0 {
			t.Errorf("the meter saw no packet for %s", a)
		}
		ssh := dial(t, ns, "tcp", net.JoinHostPort(a, "22"))
		if line, _ := bufio.NewReader(ssh).ReadString('\n'); strings.TrimSpace(line) != SSHBanner {
			t.Errorf("ssh banner %q", line)
		}
		udp := dial(t, ns, "udp", net.JoinHostPort(a, "5000"))
		if _, err := udp.Write([]byte("hi")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if n, err := udp.Read(buf); err != nil || string(buf[:n]) != "hi" {
			t.Errorf("udp echo from %s: %q %v", a, buf[:n], err)
		}
		if n := in.Packets("udp", a, 5000); n != 1 {
			t.Errorf("udp packets at %s: %d, want 1", a, n)
		}
	}
	if n := in.Packets("tcp", "198.51.100.77", 0); n != 0 {
		t.Errorf("packets for an address that nobody spoke to: %d", n)
	}
}

func TestDNSSaysWhatItIsTold(t *testing.T) {
	in, ns := joined(t)
	in.Answer("a.example.org", CNAME("b.example.org").For(5))
	in.Answer("b.example.org", A("10.1.2.3"), A(Allowed))
	in.Answer("quiet.example.org", Silent)
	ask := func(network, server, name string, qtype uint16) (*dns.Msg, error) {
		m := new(dns.Msg).SetQuestion(name, qtype)
		co := &dns.Conn{Conn: dial(t, ns, network, server)}
		wait := 5 * time.Second
		if name == "quiet.example.org." {
			wait = 300 * time.Millisecond // no answer is expected
		}
		co.SetDeadline(time.Now().Add(wait))
		if err := co.WriteMsg(m); err != nil {
			return nil, err
		}
		return co.ReadMsg()
	}
	for _, network := range []string{"udp", "tcp"} {
		r, err := ask(network, DNS+":53", "a.example.org.", dns.TypeA)
		if err != nil || len(r.Answer) != 3 || r.Answer[0].Header().Ttl != 5 {
			t.Errorf("%s: %v %v", network, r, err)
		}
	}
	if r, err := ask("udp", DNS2+":53", "no.example.org.", dns.TypeA); err != nil || r.Rcode != dns.RcodeNameError {
		t.Errorf("unknown name: %v %v", r, err)
	}
	if _, err := ask("udp", DNS+":53", "quiet.example.org.", dns.TypeA); err == nil {
		t.Error("a silent name was answered")
	}
	if n := in.Asked("a.example.org"); n != 2 {
		t.Errorf("queries recorded: %d, want 2", n)
	}
	if q := in.Queries()[2]; q.Server != DNS2 {
		t.Errorf("third query went to %s", q.Server)
	}
	if in.Packets("udp", DNS2, 53) != 1 {
		t.Error("the second server's packets weren't counted")
	}
}

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("TESTNET_CHILD") != "" {
		if _, err := Start(context.Background(), Options{}); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("READY\n")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKilledProcessLeavesNothing(t *testing.T) {
	testutil.Require(t, os.Geteuid() == 0, "needs root (network namespaces)")
	ns, err := NewNS()
	testutil.Require(t, err == nil, "network namespaces")
	defer ns.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TESTNET_CHILD=1")
	stdin, _ := cmd.StdinPipe()
	defer stdin.Close()
	out, _ := cmd.StdoutPipe()
	if err := ns.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "READY\n" {
		t.Fatalf("child says %q", line)
	}
	links := func() (n, routes int) {
		_ = ns.Do(func() error {
			ll, _ := netlink.LinkList()
			for _, l := range ll {
				if strings.HasPrefix(l.Attrs().Name, linkPrefix) {
					n++
				}
			}
			rr, _ := netlink.RouteList(nil, netlink.FAMILY_V4)
			routes = len(rr)
			return nil
		})
		return n, routes
	}
	if n, routes := links(); n != 1 || routes == 0 {
		t.Fatalf("before the kill: %d links, %d routes", n, routes)
	}
	c := dial(t, ns, "tcp", Allowed+":9000") // an open connection must not keep it
	defer c.Close()
	cmd.Process.Kill()
	cmd.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for {
		n, routes := links()
		if n == 0 && routes == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the kill: %d links, %d routes", n, routes)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestOneAtATimeInOneNamespace(t *testing.T) {
	_, ns := joined(t)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if in, err := Start(ctx, Options{Near: ns}); err == nil {
		in.Close()
		t.Error("two test internets in one namespace")
	}
}

//go:build linux

package e2e

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestB20_KernelWithoutNetfilter(t *testing.T) {
	if scenario.DockerAPI() && !scenario.Alone(t) {
		return
	}
	// What this thread starts has no netfilter: the engine, so its containers.
	runtime.LockOSThread()
	if err := testutil.WithoutNetfilter(); err != nil {
		t.Fatal(err)
	}
	if !scenario.DockerAPI() {
		byAnyIP(t)
		return
	}
	scenario.NewEngine(t, "--iptables=false", "--ip6tables=false")
	s := scenario.New(t, "restricted", "on a kernel that can't close a room, up fails, names what is missing and what to do, and no worker passes its gate")
	up := s.Expect(1, "up")
	for _, want := range []string{"the kernel lacks nfnetlink, nf_tables and nft_compat", "sudo modprobe -a nfnetlink nf_tables nft_compat", "network: none"} {
		if !strings.Contains(up.Err, want) {
			t.Errorf("up doesn't say %q:\n%s", want, up.Err)
		}
	}
	if c, ok := s.Containers()["worker"]; ok && c.State == "running" && strings.Contains(s.Logs("worker"), "READY") {
		t.Error("the worker passed its gate")
	}
	s.Expect(0, "down")
}

// byAnyIP: the namespace engine makes rooms all the same, and they keep what
// they promise.
func byAnyIP(t *testing.T) {
	s := scenario.New(t, "restricted", "on a kernel without netfilter a room is made by AnyIP: what is allowed passes, and the rest is refused at once, without a packet")
	s.Up()
	s.Sees("worker", "interfaces -> lo", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	s.Denied("worker",
		scenario.Denial{Probe: "dns 198.51.100.54 denied.example.org A -> NXDOMAIN", Control: testnet.Denied},
		scenario.Denial{Probe: "http https://denied.example.org/ ca=/ca.pem connect=198.51.100.11:443 -> " + cutOff, Control: "200"},
		scenario.Denial{Probe: "http https://198.51.100.66/ ca=/ca.pem -> " + cutOff, Control: "200"},
		scenario.Denial{Probe: "connect 198.51.100.66:9000 -> ECONNREFUSED", Control: "open"},
		scenario.Denial{Probe: "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED", Control: "data"},
		scenario.Denial{Probe: "tcp 198.51.100.66:22 -> " + cutOff, Control: "data"},
	)
	for _, r := range s.Probe("worker", "connect [2001:db8:1::66]:9000 limit=1s", "http http://169.254.169.254/ limit=1s", "icmp 198.51.100.66 limit=1s") {
		if slices.Contains([]string{"open", "data", "reply", "ok", "200"}, r.Seen) {
			t.Errorf("%s %v: %s (%s)", r.Probe, r.Args, r.Seen, r.Detail)
		}
	}
	s.Internet.Reset()
	s.Probe("worker", "connect 198.51.100.66:9000 limit=1s", "udp 198.51.100.66:5000 limit=1s", "dns 198.51.100.54 denied.example.org A limit=1s", "http https://198.51.100.66/ ca=/ca.pem limit=1s")
	silent(s, testnet.Evil)
	silent(s, testnet.DNS2)
	if ps := s.Expect(0, "ps"); !strings.Contains(ps.Out+ps.Err, "use AnyIP") {
		t.Errorf("ps doesn't say it:\n%s%s", ps.Out, ps.Err)
	}
	can := s.Expect(0, "capabilities")
	for _, want := range []string{"nf_tables", "rooms are made by AnyIP", "sudo modprobe -a nfnetlink nf_tables nft_compat"} {
		if !strings.Contains(can.Out, want) {
			t.Errorf("capabilities doesn't say %q:\n%s", want, can.Out)
		}
	}
	s.Expect(4, "up", "--learn")
	s.Expect(0, "down")
}

//go:build linux

package scenario

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/probe"
)

// Control runs probes in an ordinary place, the positive control of denials: on
// Docker a container with the engine's default network, capabilities and user,
// else a process of root on this machine.
func (s *Scenario) Control(probes ...string) []probe.Result {
	s.Helper()
	return s.ControlBy("", probes...)
}

// ControlBy is Control with a program below the test's temporary directory
// instead of workshop-init.
func (s *Scenario) ControlBy(program string, probes ...string) []probe.Result {
	s.Helper()
	r, err := s.machine.control(s, program, probes)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// Intruder is something in a service's network namespace that our product
// can't make: uid 0, with the capabilities that Docker gives unless told
// otherwise, in a root of its own with /scratch.
type Intruder struct {
	Service        string
	NoCapabilities bool
	// Files are further ones there, read-only: paths on this machine by paths
	// inside. Program is one of them, for [Scenario.Intrude] to run instead of
	// workshop-init.
	Files   map[string]string
	Program string

	id, root string
}

// Intrude runs probes as an intruder.
func (s *Scenario) Intrude(i *Intruder, probes ...string) []probe.Result {
	s.Helper()
	r, err := s.machine.intrude(s, i, probes)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// ProbeEarly is [Scenario.Probe] in a worker that may not have passed its gate,
// and so takes no command of ours: by the engine's own exec where there is one,
// else as a process of the worker's user that enters its namespaces.
func (s *Scenario) ProbeEarly(worker string, probes ...string) []probe.Result {
	s.Helper()
	r, err := s.machine.early(s, s.Inspect(worker), probes)
	s.must(err)
	return r
}

// SeesEarly is [Scenario.Sees] by [Scenario.ProbeEarly].
func (s *Scenario) SeesEarly(worker string, probes ...string) {
	s.Helper()
	s.judge(testutil.Now(), worker, probes, s.ProbeEarly(worker, probes...))
}

// GuardsControl connects to the guard's control as its owner may: by its socket,
// which is a file of the guard's alone, or, on the namespace engine, by the
// supervisor.
func (s *Scenario) GuardsControl() error {
	if m, ok := s.machine.(*namespaceMachine); ok {
		return m.with(s.Project, (*supervisor).control)
	}
	socket := filepath.Join(s.RootOf("guard"), "run/guard/control.sock")
	info, err := os.Lstat(socket)
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != s.GuardUID() || info.Mode() != os.ModeSocket|0o600 {
		return fmt.Errorf("the socket is %d's, %v", st.Uid, info.Mode())
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	return c.Close()
}

// HostAddress is an address of this machine that is in the guard's reach: its
// gateway on Docker, one of its network namespace on the namespace engine.
func (s *Scenario) HostAddress() string { s.Helper(); return s.machine.hostAddress(s) }

// Addresses are the guard's own address and that of its neighbour, an ordinary
// container; where there are no containers, of the machine and the next one.
func (s *Scenario) Addresses() (guard, peer string) { s.Helper(); return s.machine.addresses(s) }

// GuardHasIPv6 reports whether the guard reaches 2001:db8:1::/48: on Docker its
// network has no IPv6, on the namespace engine it has what the machine has.
func (s *Scenario) GuardHasIPv6() bool { return !DockerAPI() && s.Internet.IPv6 }

// twins are the two addresses of one server.
var twins = map[string]string{testnet.Allowed: testnet.Allowed6, testnet.Denied: testnet.Denied6, testnet.Evil: testnet.Evil6, testnet.SSH: testnet.SSH6}

// Twin is the IPv6 address of a server of the test internet, by its IPv4
// address, or "".
func Twin(addr string) string { return twins[addr] }

// Conns counts the connections that a server of the test internet got, by
// whichever of its addresses.
func (s *Scenario) Conns(addr string, port uint16) int {
	n := s.Internet.Conns(addr, port)
	if twin := twins[addr]; twin != "" {
		n += s.Internet.Conns(twin, port)
	}
	return n
}

// GuardUID is the guard's user on this machine.
func (s *Scenario) GuardUID() int {
	if TheEngine() == Rootless {
		return UID
	}
	return 65532
}

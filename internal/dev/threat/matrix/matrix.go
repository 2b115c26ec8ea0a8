// Package matrix makes the tries of package threat and judges them: what was
// seen, how long it took, which packets arrived, which events the guard has.
package matrix

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/threat"
	"github.com/llmdo/workshop/internal/probe"
)

// atOnce is the longest that a denial may take; what waits for an answer that
// doesn't come takes more.
const atOnce = 2 * time.Second

// settle is how long the meter may be behind the packets.
const settle = 200 * time.Millisecond

// Event is a line of the guard, as much of it as the matrix looks at.
type Event struct {
	Kind, Name, Address, Verdict string
	Count                        int
}

// Matrix tries all cases of a place and judges what came of them.
type Matrix struct {
	testing.TB
	Place    threat.Place
	Internet *testnet.Internet
	// Values are the place's placeholders: ca; on engines gateway, host, guard,
	// peer, guardpid, roompid.
	Values map[string]string
	// NoIPv6: an ordinary place has none, and shows nothing about it.
	NoIPv6 bool
	// Again: the guard may know the names' addresses already, and needn't ask.
	Again bool

	cases []threat.Case
	tried int // identities so far
}

// New returns the matrix of a place; the test internet learns its names.
func New(t testing.TB, p threat.Place, in *testnet.Internet, values map[string]string) *Matrix {
	m := &Matrix{TB: t, Place: p, Internet: in, Values: values, cases: threat.Cases()}
	for _, c := range m.cases {
		address := testnet.A(c.Address)
		if c.ID == "sni-on-shared-address" {
			address = testnet.A(testnet.Allowed)
		}
		in.Answer(c.Denied, address)
		in.Answer(c.Sub, address)
	}
	return m
}

// Control makes the tries from an ordinary place, and fails the test for each
// that doesn't arrive: its denial would prove nothing. run runs probes there.
func (m *Matrix) Control(run func(lines []string) []probe.Result) {
	m.Helper()
	m.Internet.Reset()
	var lines []string
	var with []threat.Case
	for _, c := range m.cases {
		if c.Control.None != "" || !m.reaches(c) {
			continue
		}
		with = append(with, c)
		lines = append(lines, c.Controls(m.Values)...)
	}
	seen := map[string][]string{}
	for _, r := range run(lines) {
		seen[r.Name] = append(seen[r.Name], r.Seen+" "+r.Detail)
	}
	time.Sleep(settle)
	arrived := m.arrived()
	for _, c := range with {
		if c.Control.Arrives && arrived[c.Address] == 0 || c.Control.Asked && m.Internet.Asked(c.Denied)+m.Internet.Asked(c.Sub) == 0 {
			m.Errorf("control of %s: nothing arrived at %s (seen: %q)", c.Name, c.Address, seen[c.Name])
		}
	}
}

// reaches reports whether an ordinary place reaches the family's addresses: an
// engine's containers have no IPv6 unless told so.
func (m *Matrix) reaches(c threat.Case) bool {
	return !m.NoIPv6 || !strings.Contains(c.Address, ":")
}

// arrived counts packets by address.
func (m *Matrix) arrived() map[string]int {
	out := map[string]int{}
	for key, n := range m.Internet.Counts().Packets {
		if _, to := destination(key); to.Port() == 0 {
			out[to.Addr().String()] += n
		}
	}
	return out
}

// destination reads a key of the test internet's packets; port 0 stands for all
// ports together.
func destination(key string) (protocol string, to netip.AddrPort) {
	protocol, where, _ := strings.Cut(key, " ")
	if to, err := netip.ParseAddrPort(where); err == nil {
		return protocol, to
	}
	a, _ := netip.ParseAddr(where)
	return protocol, netip.AddrPortFrom(a, 0)
}

// expected are the packets of the allowed name: to its servers, and to the
// guard's resolver.
func expected(protocol string, to netip.AddrPort) bool {
	switch to.Addr().String() {
	case testnet.Allowed, testnet.Allowed6:
		return protocol == "tcp" && slices.Contains([]uint16{0, 80, 443}, to.Port())
	case testnet.DNS:
		return slices.Contains([]uint16{0, 53}, to.Port())
	}
	return false
}

// Try makes all tries of an identity, unless those of another have failed:
// they take long then, and the others' would show the same. run runs probes as it, in the room, by
// workshop-init or, if raw, by the program of package attacks; events are all
// events of the guard so far.
func (m *Matrix) Try(who threat.Identity, run func(raw bool, lines []string) []probe.Result, events func() []Event) {
	m.Helper()
	if m.tried > 0 && m.Failed() {
		return
	}
	m.Internet.Reset()
	m.tried++
	lost := map[string]bool{}
	for _, raw := range []bool{false, true} {
		var lines []string
		for _, c := range m.cases {
			if c.In(m.Place, who) && c.Raw == raw {
				for _, line := range c.Probes(who, m.Values) {
					if strings.Contains(line, "{") && strings.Contains(line, "}") {
						m.Fatalf("%s: %s has a placeholder without a value", c.Name, line)
					}
					lines = append(lines, line)
				}
				lost[c.Name] = c.Lost != ""
			}
		}
		for i, r := range run(raw, lines) {
			took := time.Duration(r.Millis * float64(time.Millisecond))
			if !r.OK {
				m.Errorf("%s: %s: %s\n\tsaw %s (%s), want %s", who, r.Name, lines[i], r.Seen, r.Detail, r.Expected)
			}
			if took > atOnce && !lost[r.Name] {
				m.Errorf("%s: %s: took %v, by a timeout: %s", who, r.Name, took, lines[i])
			}
		}
	}
	m.meter(who)
	m.events(who, events)
}

// meter fails the test for everything that arrived and belongs to no allowed
// name.
func (m *Matrix) meter(who threat.Identity) {
	m.Helper()
	time.Sleep(settle)
	counts := m.Internet.Counts()
	for _, key := range slices.Sorted(maps.Keys(counts.Packets)) {
		if protocol, to := destination(key); !expected(protocol, to) {
			m.Errorf("%s: exfil meter: %d packets %s%s", who, counts.Packets[key], key, m.owner(to.Addr().String()))
		}
	}
	for _, r := range counts.Requests {
		if r.Host != "allowed.example.org" || r.SNI != "" && r.SNI != r.Host {
			m.Errorf("%s: exfil meter: a request %+v arrived", who, r)
		}
	}
	for _, q := range counts.Queries {
		if q.Name != "allowed.example.org." || q.Type != "A" && q.Type != "AAAA" || q.Options != 0 {
			m.Errorf("%s: exfil meter: a question %s %s with %d options arrived", who, q.Name, q.Type, q.Options)
		}
	}
	if len(counts.Queries) == 0 && m.tried == 1 && !m.Again || len(counts.Requests) == 0 {
		m.Errorf("%s: the meter saw nothing of the allowed name: it shows nothing", who)
	}
}

// owner names the case that an address belongs to.
func (m *Matrix) owner(address string) string {
	for _, c := range m.cases {
		if c.Address == address {
			return " (" + c.Name + ")"
		}
	}
	return ""
}

// events compares the guard's events with the tries: each line that says so is
// one, counted exactly.
func (m *Matrix) events(who threat.Identity, events func() []Event) {
	m.Helper()
	wrong := map[string][2]int{}
	for end := time.Now().Add(4 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		clear(wrong)
		all := events()
		for _, c := range m.cases {
			if c.Event == "" || !c.In(m.Place, who) {
				continue
			}
			got, want := 0, len(c.Lines)*m.tried
			for _, e := range all {
				if e.Verdict == "deny" && slices.Contains(strings.Split(c.Event, "|"), e.Kind) &&
					(e.Address == c.Address || strings.HasSuffix(e.Name, c.Denied) || strings.HasSuffix(e.Name, c.Sub)) {
					got += e.Count
				}
			}
			if got != want {
				wrong[c.Name] = [2]int{got, want}
			}
		}
		if len(wrong) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		m.Errorf("%s: %s: %d denials in the guard's events, want %d", who, name, wrong[name][0], wrong[name][1])
	}
}

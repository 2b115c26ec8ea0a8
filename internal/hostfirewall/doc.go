// Package hostfirewall writes rules for the firewall of the machine itself: what it can
// hold if rooms and guards failed. It is pure: the caller says what is up, and a person
// applies the text. All names in it may be a repository's: the text has none of them
// outside of comments, and [comment] leaves nothing there that ends one.
package hostfirewall

import (
	"net/netip"
	"strconv"

	"github.com/llmdo/workshop/firewall"
)

// Rules are those for the workshops of one user.
type Rules struct {
	// UID is the user's: each has chains of their own, which nobody else's replace.
	UID int
	// Bridges are the networks of guards that an engine connected by a bridge.
	Bridges []Bridge
	// Programs are the guards among this machine's own programs.
	Programs []Programs
	// Ports are the numbers that are published on loopback alone.
	Ports []Port
	// NotHeld is what can't be held here, in words.
	NotHeld []string
}

// Bridge is the network of one guard.
type Bridge struct {
	Project   string
	Interface string
	// Guard4 and Guard6 are the guard's addresses; the zero Addr: it has none.
	Guard4, Guard6 netip.Addr
	// Upstreams are the servers that the guard itself uses, Lines what lines of the
	// workshop open of ranges that are closed otherwise.
	Upstreams, Lines []Opening
	// Beyond are the guard's ports that the file publishes beyond loopback.
	Beyond []Port
}

// Programs are guards that the kernel knows by their user or their control group.
type Programs struct {
	Projects []string
	// UID is of programs that have a user of their own; Cgroup is the path of a group of
	// version 2 with all of them, and comes first.
	UID    int
	Cgroup string
	// Upstreams and Lines are those of all projects: their guards can't be told apart.
	Upstreams, Lines []Opening
}

// Opening is a range with ports of TCP.
type Opening struct {
	To    netip.Prefix
	Ports []firewall.PortRange
	UDP   bool // over UDP, too
	// Named: it is what a name leads to. A guard connects to the machine that it is on
	// only where a line has its address.
	Named bool
	Why   string // the line, or what it is
}

// Port is one number of TCP.
type Port struct {
	Number uint16
	Why    string
}

// Empty reports whether nothing is held.
func (r *Rules) Empty() bool {
	return len(r.Bridges)+len(r.Programs)+len(r.Ports) == 0
}

// name is that of a chain of iptables, at most 28 characters.
func name(uid int, chain string) string { return "WORKSHOP-" + strconv.Itoa(uid) + "-" + chain }

package doctor

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/ports"
)

// PortState is what is known of the workshop that has a port.
type PortState string

// The states. Of an unknown one an engine doesn't answer, or is another machine's.
const (
	PortUp      PortState = "up"
	PortDown    PortState = "down"
	PortGone    PortState = "directory gone"
	PortUnknown PortState = "unknown"
)

// PortClaim is a port of a worker, as the registry has it, or its file.
type PortClaim struct {
	ports.Lease
	// File is the workshop's; empty: it isn't known.
	File  string
	State PortState
	// Leased: the registry has it, not the file alone.
	Leased bool
	// Stale: the file doesn't have it any more.
	Stale bool
	// Busy: a program listens there.
	Busy bool
	// Ordinary: what listens there has no privileges.
	Ordinary bool
}

// Listener is a program that listens on an address of this machine.
type Listener struct {
	At   netip.AddrPort
	UID  int
	User string // its name; empty: there is none
	// PID and Program are those of a process that has the socket; 0: it can't be seen.
	PID     int
	Program string
}

// PublishedAt is a port that a running container publishes.
type PublishedAt struct {
	Project, Dir, Container string
	At                      netip.AddrPort
}

// PortsSeen is what was seen of the ports of this machine.
type PortsSeen struct {
	UID int // the caller's
	// Registry is why the registry isn't used, and what helps; nil: it is.
	Registry *ports.FileError
	// Claims are the ports of the caller's workshops.
	Claims    []PortClaim
	Listeners []Listener
	// Published are the ports of the caller's workshops that run, Foreign those of other
	// Compose projects.
	Published, Foreign []PublishedAt
	// Unprivileged is the first port that every user may listen on.
	Unprivileged uint16
}

// PortFinding is a finding about ports.
type PortFinding struct {
	Finding
	Address string `json:"address,omitempty"`
	// Fixable: nothing uses it, and `--fix` gives the lease up.
	Fixable bool         `json:"fixable"`
	Lease   *ports.Lease `json:"-"`
}

// The names of the findings about ports.
const (
	PortRegistry       = "registry"
	PortDirectoryGone  = "directory-gone"
	PortStale          = "stale-lease"
	PortReservedTwice  = "reserved-twice"
	PortChosenReserved = "chosen-and-reserved"
	PortLeasedTwice    = "leased-twice"
	PortTaken          = "taken"
	PortOtherUser      = "taken-by-other-user"
	PortNoEndpoint     = "no-endpoint"
	PortPrivileged     = "privileged"
	PortExposed        = "exposed"
	PortForeign        = "foreign-exposed"
)

// Ports judges what was seen of the ports of this machine.
func Ports(s PortsSeen) (out []PortFinding) {
	if s.Registry != nil {
		out = append(out, portFinding(PortRegistry, Error, netip.AddrPort{}, s.Registry.Error(), "if it is yours: `"+s.Registry.Do+"`"))
	}
	var live []PortClaim
	for _, c := range s.Claims {
		switch {
		case c.State == PortGone || c.Stale && c.State == PortDown:
			out = append(out, c.leftover())
		case !c.Stale:
			live = append(live, c)
		}
	}
	out = append(out, conflicts(live)...)
	for _, c := range live {
		out = append(out, s.held(c, live)...)
		if c.Ordinary && c.Port < s.Unprivileged && c.State == PortDown {
			out = append(out, c.privileged(s.Unprivileged))
		}
	}
	out = append(out, s.exposed()...)
	sortfunc.Stable(out, func(a, b PortFinding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	return out
}

// rank orders levels, the worst first.
func rank(l Level) int { return slices.Index([]Level{Error, Warning, OK}, l) }

func portFinding(name string, level Level, at netip.AddrPort, text, do string) PortFinding {
	f := PortFinding{Finding: Finding{Group: Network, Name: name, Level: level, Text: text, Do: do}}
	if at.IsValid() {
		f.Address = at.String()
	}
	return f
}

// conflicts are claims on one address. Each is of one kind: files that reserve it, a lease
// that was chosen with a file that reserves it, leases that were chosen.
func conflicts(live []PortClaim) (out []PortFinding) {
	told := map[int]bool{} // with those that were before it
	for i, c := range live {
		var reserved, chosen []PortClaim
		var same []int
		for j, other := range live {
			if j != i && ports.Meet(c.Address(), other.Address()) {
				if other.Reserved {
					reserved = append(reserved, other)
				} else {
					chosen = append(chosen, other)
				}
				if other.Reserved == c.Reserved && j > i {
					same = append(same, j)
				}
			}
		}
		switch {
		case c.Reserved && len(reserved) > 0 && !told[i]:
			do := "let one of them have a number of its own: write " + c.open() + " under `ports` there"
			if reserved[0].Dir == c.Dir { // one file, under two names
				do = "give one of them up, if that is no longer used: " + c.release()
			}
			out = append(out, portFinding(PortReservedTwice, Warning, c.Address(), c.Address().String()+" is reserved by the files of "+names(append([]PortClaim{c}, reserved...))+": only one of them can be up", do))
		case !c.Reserved && len(reserved) > 0:
			out = append(out, portFinding(PortChosenReserved, Warning, c.Address(), c.Address().String()+", which was chosen for "+c.name()+", is reserved by "+names(reserved),
				"have another one chosen by its next `up`: "+c.release()))
		case !c.Reserved && len(chosen) > 0 && !told[i]:
			out = append(out, portFinding(PortLeasedTwice, Error, c.Address(), c.Address().String()+" is leased twice: to "+names(append([]PortClaim{c}, chosen...)),
				"have another one chosen by the next `up`: "+c.release()))
		}
		for _, j := range same {
			told[j] = true
		}
	}
	return out
}

// held is about who listens on the address of a claim.
func (s PortsSeen) held(c PortClaim, live []PortClaim) []PortFinding {
	own := slices.ContainsFunc(s.Published, func(p PublishedAt) bool {
		return p.Project == c.Project && p.Dir == c.Dir && p.At == c.Address()
	})
	switch {
	case c.State == PortUnknown || c.State == PortUp && (!c.Leased || !c.Used || c.Busy && own):
		return nil
	case c.State == PortUp && !c.Busy:
		return []PortFinding{portFinding(PortNoEndpoint, Error, c.Address(), c.name()+" is up, and nothing listens on "+c.Address().String()+", where its port is published", "bring it up again: "+c.command("up"))}
	case !c.Busy:
		return nil
	}
	for _, p := range s.Published {
		if !ports.Meet(p.At, c.Address()) {
			continue
		}
		if slices.ContainsFunc(live, func(o PortClaim) bool {
			return o.Key != c.Key && o.Project == p.Project && o.Dir == p.Dir && ports.Meet(o.Address(), p.At)
		}) {
			return nil // the conflict says it
		}
		return []PortFinding{portFinding(PortTaken, Warning, c.Address(), c.what()+" is published by project "+p.Project+" ("+p.Dir+")", "end that one: "+end(p.Project))}
	}
	by, seen := s.holder(c.Address())
	name, level := PortTaken, Warning
	if seen && by.UID != s.UID {
		name, level = PortOtherUser, Error
	}
	return []PortFinding{portFinding(name, level, c.Address(), c.what()+" is taken by "+by.text(seen), by.look(c.Port))}
}

// holder returns the program that listens on an address.
func (s PortsSeen) holder(at netip.AddrPort) (Listener, bool) {
	for _, l := range s.Listeners {
		if ports.Meet(l.At, at) {
			return l, true
		}
	}
	// One on all addresses of IPv6 may have those of IPv4, too.
	i := slices.IndexFunc(s.Listeners, func(l Listener) bool { return l.At.Port() == at.Port() && l.At.Addr() == netip.IPv6Unspecified() })
	if i < 0 {
		return Listener{}, false
	}
	return s.Listeners[i], true
}

// Holder names the program that listens on an address; empty: none is seen.
func (s PortsSeen) Holder(at netip.AddrPort) string {
	l, seen := s.holder(at)
	if !seen {
		return ""
	}
	return l.text(true)
}

// exposed are ports that other machines reach.
func (s PortsSeen) exposed() (out []PortFinding) {
	known := map[netip.AddrPort]bool{}
	for _, p := range s.Published {
		known[p.At] = true
		if p.At.Addr().IsLoopback() {
			continue
		}
		who, do := "project "+p.Project+" ("+p.Dir+")", "end it: "+end(p.Project)
		for _, c := range s.Claims {
			if c.Project == p.Project && c.Dir == p.Dir && c.Address() == p.At {
				who, do = c.name(), "leave `host` out of that port, then: "+c.command("up")
			}
		}
		out = append(out, portFinding(PortExposed, Warning, p.At, who+" is published on "+p.At.String()+": other machines may reach it", do))
	}
	for _, l := range s.Listeners {
		if !l.At.Addr().IsLoopback() && !known[l.At] && slices.Contains([]string{"workshop", "llmdo", "workshop-init"}, l.Program) {
			out = append(out, portFinding(PortExposed, Error, l.At, l.text(true)+" listens on "+l.At.String()+", which no running workshop publishes: other machines may reach it", l.look(l.At.Port())))
		}
	}
	type port struct {
		container string
		port      uint16
	}
	told := map[port]bool{} // Docker has one for each family
	for _, p := range s.Foreign {
		if k := (port{p.Container, p.At.Port()}); !p.At.Addr().IsLoopback() && !told[k] {
			told[k] = true
			out = append(out, portFinding(PortForeign, Warning, p.At, "container "+p.Container+" of the Compose project "+p.Project+" is published on "+p.At.String()+": other machines may reach it",
				"write 127.0.0.1: before the port in its compose file, then `docker compose -p "+shellquote.Quote(p.Project)+" up -d`"))
		}
	}
	return out
}

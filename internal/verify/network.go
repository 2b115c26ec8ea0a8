package verify

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// slow is how many milliseconds a refusal may take: more would be a timeout.
const slow = 1200

func (w *Worker) interfaces() Line {
	e := w.begin("B20")
	e.tried("the interfaces of its network namespace")
	e.says(w.Seen, "net.interfaces", "interfaces:", "lo")
	e.works(w.Seen, "control.loop", "a connection over its own loopback", "ok")
	if w.Net == nil {
		e.refused(w.Seen, "unreachable", unreachable, "none.198.51.100.1:443", "none.198.51.100.1:9", "none.169.254.169.254:80", "dns.look-up")
	}
	if p := w.process(e); p != nil && !p.unread(e, "interfaces") {
		p.isMain(e)
		e.control(slices.Contains(p.Interfaces, "lo"), "/proc/%s/net/dev lists lo", p.Status["Pid"])
		e.outside(slices.Equal(p.Interfaces, []string{"lo"}), "interfaces: %s", strings.Join(p.Interfaces, ", "))
	}
	return e.line()
}

func (w *Worker) room() Line {
	e := w.begin("B22")
	e.tried("changing routes, addresses and rules; marks; the guard's ports")
	e.refused(w.Seen, "refused", noPermission, "room.route", "room.address", "room.rules", "room.xtables", "room.mark", "room.transparent")
	if w.Net != nil {
		e.refused(w.Seen, "refused", noPermission, "room.port 53", "room.port 531", "room.port 533", "room.port 534", "room.port 535", "room.port 536", "room.port 1023")
	}
	e.works(w.Seen, "control.bind", "listening on a high port", "ok")
	return e.line()
}

// reachable begins a line that is about the guard's decisions; not ok: it is done.
func (w *Worker) decisions(promise string) (e *evidence, ok bool) {
	e = w.begin(promise)
	switch {
	case w.Net == nil:
		e.tried("connecting and looking up without a network")
		e.refused(w.Seen, "unreachable", unreachable, "none.198.51.100.1:443", "none.198.51.100.1:9", "none.169.254.169.254:80", "dns.look-up")
		e.works(w.Seen, "control.loop", "a connection over its own loopback", "ok")
		if p := w.process(e); p != nil && !p.unread(e, "interfaces") {
			e.outside(slices.Equal(p.Interfaces, []string{"lo"}), "interfaces: %s", strings.Join(p.Interfaces, ", "))
		}
		return e, false
	case w.Net.Closed != "":
		e.miss("%s", w.Net.Closed)
		return e, false
	}
	e.works(w.Seen, "control.dns", "the guard's own name", "127.0.0.1")
	if w.Net.NoEvents != "" {
		e.miss("the guard's events: %s", w.Net.NoEvents)
	}
	return e, true
}

// denied records that the guard counted the denial of what a probe tried, if it did.
func (w *Worker) denied(e *evidence, key, what string, is func(Denial) bool) {
	if _, tried := w.Seen[key]; w.Net.NoEvents != "" || !tried {
		return
	}
	i := slices.IndexFunc(w.Net.Denials, is)
	if i < 0 {
		e.outside(false, "the guard has no denial of %s", what)
		return
	}
	e.outside(true, "the guard denied %s (%s)", what, w.Net.Denials[i].Reason)
}

func ofName(kind, name string) func(Denial) bool {
	return func(d Denial) bool { return d.Name == name && (kind == "" || d.Kind == kind) }
}

func ofAddress(a netip.Addr, port uint16) func(Denial) bool {
	return func(d Denial) bool { return d.Address == a.String() && d.Port == port }
}

func (w *Worker) names() Line {
	e, ok := w.decisions("B23")
	if !ok {
		return e.line()
	}
	if w.Net.Learns {
		return notTested("B23", w.Name, "its room learns: names are let through until that ends")
	}
	t := &w.Net.Tries
	e.tried("looking up %s", strings.TrimSuffix(t.Special+" and "+t.Name, " and "))
	for _, name := range []string{t.Special, t.Name} {
		if name != "" {
			e.refused(w.Seen, "refused", []string{"NXDOMAIN"}, "dns."+name)
			w.denied(e, "dns."+name, "the look-up of "+name, ofName("dns", name))
		}
	}
	return e.line()
}

func (w *Worker) byName() Line {
	e, ok := w.decisions("B24")
	if !ok {
		return e.line()
	}
	if not := w.notRestricted(); not != "" {
		return notTested("B24", w.Name, not)
	}
	t := &w.Net.Tries
	if t.Name == "" {
		return notTested("B24", w.Name, "its policy allows all names that were chosen")
	}
	e.tried("TLS and HTTP for %s, to %s, and by the proxy", t.Name, t.Address)
	e.refused(w.Seen, "cut", cut, "tls.https://"+t.Name)
	e.refused(w.Seen, "answered", append([]string{"403"}, cut...), "http.http://"+t.Name, "http.through the proxy")
	w.denied(e, "tls.https://"+t.Name, "TLS for "+t.Name, ofName("tls", t.Name))
	w.denied(e, "http.http://"+t.Name, "HTTP for "+t.Name, ofName("http", t.Name))
	for _, host := range t.Live {
		good := []string{"handshake", "NOTTLS"}
		if !strings.HasSuffix(host, ":443") {
			good = []string{"200", "204", "301", "302", "303", "307", "308", "400", "401", "403", "404", "405", "500", "501", "503"}
		}
		e.tried("%s, also sent to %s", host, t.Address)
		e.works(w.Seen, "live."+host, host, good...)
		if r, ok := w.Seen["spoof."+host]; ok {
			e.inside(true, "%s by way of %s: %s", host, t.Address, saw(r))
		}
		name, _, _ := strings.Cut(host, ":")
		dialled := w.Net.Dialled[name]
		if len(dialled) == 0 && len(e.failed) == 0 {
			e.miss("the guard has no event of a connection to %s", host)
		}
		for _, a := range dialled {
			e.outside(a != t.Address.String(), "the guard dialled %s for %s", a, name)
		}
	}
	return e.line()
}

// notRestricted is why B24 and B25 don't hold.
func (w *Worker) notRestricted() string {
	switch {
	case w.Mode == firewall.Open:
		return "network: open: it doesn't hold in this mode"
	case w.Net.Learns:
		return "its room learns: names are let through until that ends"
	}
	return ""
}

func (w *Worker) otherPorts() Line {
	e, ok := w.decisions("B25")
	if !ok {
		return e.line()
	}
	if not := w.notRestricted(); not != "" {
		return notTested("B25", w.Name, not)
	}
	t := &w.Net.Tries
	if t.Port == 0 {
		return notTested("B25", w.Name, "its policy allows all ports that were chosen")
	}
	at := netip.AddrPortFrom(t.Address, t.Port)
	e.tried("%s, which no line names", at)
	e.refused(w.Seen, "refused", cut, "port."+at.String())
	e.refused(w.Seen, "UDP refused", cut, "udp."+at.String())
	w.denied(e, "port."+at.String(), at.String(), ofAddress(t.Address, t.Port))
	if t.Untold != 0 {
		at := netip.AddrPortFrom(t.Address, t.Untold)
		e.tried("%s, which its own kernel refuses", at)
		e.refused(w.Seen, "refused", cut, "untold."+at.String())
	}
	if t.Named != 0 {
		named := netip.AddrPortFrom(t.Address, t.Named)
		e.tried("%s, a port that a line names for others", named)
		e.refused(w.Seen, "cut", cut, "named."+named.String())
		w.denied(e, "named."+named.String(), named.String(), ofAddress(t.Address, t.Named))
	}
	return e.line()
}

var metadata = netip.AddrFrom4([4]byte{169, 254, 169, 254})

func (w *Worker) neverReached() Line {
	e, ok := w.decisions("B26")
	if !ok {
		return e.line()
	}
	t := &w.Net.Tries
	e.tried("169.254.169.254, [fd00:ec2::254]")
	e.refused(w.Seen, "refused", append([]string{"403"}, cut...), "never.http://169.254.169.254", "never.https://169.254.169.254", "never."+t.metadata())
	e.refused(w.Seen, "refused", cut6, "never.http://[fd00:ec2::254]")
	w.denied(e, "never.http://169.254.169.254", "169.254.169.254:80", ofAddress(metadata, 80))
	w.denied(e, "never."+t.metadata(), t.metadata(), ofAddress(metadata, t.Never))
	if t.Private.IsValid() {
		at := netip.AddrPortFrom(t.Private, t.Never)
		e.tried("%s, a private one", at)
		e.refused(w.Seen, "refused", cut, "never."+at.String())
		w.denied(e, "never."+at.String(), at.String(), ofAddress(t.Private, t.Never))
	}
	switch c := w.Net.Canary; {
	case c.Address == "":
	case !c.Control:
		e.control(false, "a connection of this program to its listener at %s", c.Address)
	default:
		e.tried("a listener of this program at %s", c.Address)
		e.control(true, "this program reached its listener at %s", c.Address)
		e.refused(w.Seen, "refused", cut, "never.this machine")
		e.outside(c.Others == 0, "the listener got %d connections of others", c.Others)
	}
	return e.line()
}

func (w *Worker) denials() Line {
	if w.Net == nil {
		e, _ := w.decisions("B28")
		w.immediate(e)
		return e.line()
	}
	e, ok := w.decisions("B28")
	if !ok {
		return e.line()
	}
	e.tried("the time of each refusal above, and the guard's events of them")
	w.immediate(e)
	if w.Net.NoEvents != "" {
		return e.line()
	}
	t := &w.Net.Tries
	w.denied(e, "dns."+t.Special, "the look-up", ofName("dns", t.Special))
	packets := uint64(0)
	if t.Port != 0 && w.Mode == firewall.Restricted && !w.Net.Learns {
		at := netip.AddrPortFrom(t.Address, t.Port).String()
		w.denied(e, "port."+at, at, ofAddress(t.Address, t.Port))
		packets++
	}
	more := w.Net.RefusedAfter - w.Net.RefusedBefore
	if w.Unseen != "" {
		packets = 0 // perhaps none was tried
	}
	e.outside(w.Net.RefusedAfter >= w.Net.RefusedBefore && more >= packets, "the kernel's count of refused packets rose by %d", more)
	return e.line()
}

// immediate records how long refusals took.
func (w *Worker) immediate(e *evidence) {
	longest, n := 0.0, 0
	for key, r := range w.Seen {
		kind, what, _ := strings.Cut(key, ".")
		if !slices.Contains([]string{"none", "dns", "tls", "http", "port", "untold", "udp", "named", "never", "endpoint", "around"}, kind) {
			continue
		}
		n++
		longest = max(longest, r.Millis)
		if r.Seen == "TIMEOUT" || r.Millis > slow {
			e.inside(false, "%s took %.0f ms (%s)", what, r.Millis, saw(r))
		}
	}
	if n > 0 {
		e.inside(true, "%d refusals, the longest took %.1f ms", n, longest)
	}
}

func (w *Worker) neverList() Line {
	if w.Net == nil {
		return notTested("B31", w.Name, "network: none: no guard dials for it")
	}
	e := about("B31", w.Name)
	if w.Net.Closed != "" {
		e.miss("%s", w.Net.Closed)
		return e.line()
	}
	e.tried("what the guard would do with addresses of its never-list")
	for _, a := range sortedKeys(w.Net.Explained) {
		x := w.Net.Explained[a]
		e.outside(!x.Allowed && !x.Dialled, "%s: %s", a, x.Reason)
	}
	e.control(len(w.Net.Explained) > 0, "the guard answered for %d addresses", len(w.Net.Explained))
	return e.line()
}

package verify

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Limits of the copy of a project: small, so that a machine notices nothing when a
// worker uses them up.
const (
	CopyMemory  = 256 << 20
	CopyPIDs    = 200
	CopyScratch = 4 << 20
)

// FillProbes use up the limits of a worker of a copy.
func FillProbes() []Probe {
	b := &batch{}
	b.add("control.memory", "memory 8M limit=20s")
	b.add("control.processes", "processes 3 limit=20s")
	b.add("control.scratch", "fill /scratch/%s 1M limit=20s", tryName)
	b.add("fill.memory", "memory 1G limit=20s")
	b.add("fill.processes", "processes 400 limit=20s")
	b.add("fill.scratch", "fill /scratch/%s 16M limit=20s", tryName)
	return b.all
}

// Filled judges what using up the limits of a copy's worker did: before and after are
// its groups.
func Filled(worker string, seen Seen, unseen string, before, after *Outside) Line {
	e := inCopy("B5", worker)
	e.tried("256M of memory, 200 processes and 4M of /scratch, by 1G, 400 processes and 16M")
	if unseen != "" {
		e.miss("inside: %s", unseen)
	}
	e.works(seen, "control.memory", "8M", "ok")
	e.works(seen, "control.processes", "3 processes", "ok")
	e.works(seen, "control.scratch", "1M in /scratch", "ok")
	for key, want := range map[string]string{"fill.memory": "killed", "fill.processes": "EAGAIN", "fill.scratch": "ENOSPC"} {
		if r, ok := seen[key]; !ok {
			e.miss("the probe said nothing of %s", key)
		} else {
			e.inside(r.Seen == want, "%s: %s", strings.TrimPrefix(key, "fill."), saw(r))
		}
	}
	slices.Sort(e.insides)
	p, q := before.process(e), after.process(e)
	if p == nil || q == nil || p.Groups == nil || q.Groups == nil {
		e.miss("its control groups can't be read")
		return e.line()
	}
	g := q.Groups
	e.control(g.Member, "the groups list process %s: %v", q.Status["Pid"], g.Member)
	e.outside(p.Status["Pid"] == q.Status["Pid"], "the worker went on")
	// The kernel counts ahead, by 32 pages for each processor.
	e.outside(g.Peak <= CopyMemory+CopyMemory/16, "at most %d bytes of %d were used", g.Peak, int64(CopyMemory))
	if g.Killed >= 0 {
		e.outside(g.Killed > p.Groups.Killed, "%d processes were OOM-killed", g.Killed-p.Groups.Killed)
	}
	if g.Full >= 0 {
		e.outside(g.Full > p.Groups.Full, "%d new processes were refused", g.Full-p.Groups.Full)
	}
	return e.line()
}

// CrashProbes are tried for a time while room and guard are killed, each by a program of
// its own.
func CrashProbes(t *Tries, canary string, lasts time.Duration) [][]Probe {
	one := func(key, format string, args ...any) []Probe {
		b := &batch{}
		b.add(key, fmt.Sprintf(format, args...)+" limit=1s for=%s", lasts)
		return b.all
	}
	name := t.Name
	if name == "" {
		name = t.Special
	}
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(t.Address, port) }
	all := [][]Probe{
		one("crash.TLS to "+t.Address.String(), "tls %s:443 connect=%s", name, at(443)),
		one("crash.HTTP to "+t.Address.String(), "http http://%s/ connect=%s", name, at(80)),
		one("crash.a name", "dns 127.0.0.1 %s A", name),
	}
	if t.Port != 0 {
		all = append(all, one("crash."+at(t.Port).String(), "%s %s", t.connect(), at(t.Port)))
	}
	if t.Named != 0 {
		all = append(all, one("crash."+at(t.Named).String(), "tcp %s", at(t.Named)))
	}
	if canary != "" {
		all = append(all, one("crash.this machine", "tcp %s", canary))
	}
	return all
}

// Crash is what was seen while room and guard were killed.
type Crash struct {
	Seen, Later Seen // while they were killed, and afterwards
	Unseen      string
	Canary      Canary
	Killed      []string // services, in order
	// Back is how long the guard took to come back; 0: it didn't.
	Back time.Duration
	// Before and After are those of the worker around the guard's crash, Closed that after
	// the room's.
	Before, After, Closed *Outside
}

// escaped are results that mean that something got out.
var escaped = []string{"open", "data", "handshake", "reply", "200"}

// Crashed judges what happened to a worker while the guard and then its room were
// killed (B21), and what became of the guard (B29).
func Crashed(worker string, c *Crash) []Line {
	e := inCopy("B21", worker)
	e.tried("connections and look-ups without a pause while %s were killed", strings.Join(c.Killed, " and "))
	if c.Unseen != "" {
		e.miss("inside: %s", c.Unseen)
	}
	var words []string
	for key, r := range c.Seen {
		for word := range strings.SplitSeq(r.Seen, "+") {
			_, addrErr := netip.ParseAddr(word)
			if slices.Contains(escaped, word) || addrErr == nil {
				e.inside(false, "%s: %s", strings.TrimPrefix(key, "crash."), saw(r))
			}
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	slices.Sort(words)
	e.inside(true, "%d kinds of tries saw %s", len(c.Seen), strings.Join(words, ", "))
	if c.Canary.Address != "" {
		e.control(c.Canary.Control, "this program reached its listener at %s: %v", c.Canary.Address, c.Canary.Control)
		e.outside(c.Canary.Others == 0, "the listener got %d connections of others", c.Canary.Others)
	}
	e.control(len(c.Killed) > 1, "%d services were killed", len(c.Killed))
	if p := c.Closed.process(e); p != nil && !p.unread(e, "interfaces") {
		e.outside(slices.Equal(p.Interfaces, []string{"lo"}), "interfaces: %s", strings.Join(p.Interfaces, ", "))
	}
	g := inCopy("B29", "guard")
	g.tried("the guard was killed")
	g.control(slices.Contains(c.Killed, "guard"), "it ended by SIGABRT")
	g.outside(c.Back > 0, "it was back after %.1f s", c.Back.Seconds())
	g.works(c.Later, "control.dns", "the guard's own name afterwards", "127.0.0.1")
	if p, q := c.Before.process(g), c.After.process(g); p != nil && q != nil {
		g.outside(p.Status["Pid"] == q.Status["Pid"], "the worker's main process was %s and is %s", p.Status["Pid"], q.Status["Pid"])
	}
	return []Line{e.line(), g.line()}
}

// LaterProbes are tried once the guard is back.
func LaterProbes() []Probe {
	b := &batch{}
	b.add("control.dns", "dns 127.0.0.1 ready.workshop.internal A")
	return b.all
}

// FloodProbes are sent to the guard for a time, each by a program of its own.
func FloodProbes(t *Tries, lasts time.Duration) (all [][]Probe) {
	for key, text := range map[string]string{
		"names": fmt.Sprintf("dns 127.0.0.1 %s A", t.Special), "questions over TCP": fmt.Sprintf("dns 127.0.0.1 %s A net=tcp", t.Special),
		"garbage for TLS":  fmt.Sprintf(`tcp %s send="\x16\x03\x01\xff\xff\x01\xff\xff\xff"`, netip.AddrPortFrom(t.Address, 443)),
		"garbage for HTTP": fmt.Sprintf(`tcp %s send="GET / HTTP/1.1\r\nHost: \x00\r\n\r\n"`, netip.AddrPortFrom(t.Address, 80)),
		"tunnels":          fmt.Sprintf("tunnel 127.0.0.1:536 %s:443", t.Special),
	} {
		b := &batch{}
		b.add("flood."+key, "%s limit=300ms for=%s", text, lasts)
		all = append(all, b.all)
	}
	return all
}

// Flooded judges what a flood did to the guard. sameGuard: it is the process that it was;
// answered is how long it took to answer afterwards, 0: it didn't.
func Flooded(worker string, seen Seen, sameGuard bool, panics uint64, answered time.Duration, guard *Outside) Line {
	e := inCopy("B60", worker)
	e.tried("names, garbage and tunnels without a pause for some seconds")
	e.control(len(seen) > 0, "%d kinds of tries ran", len(seen))
	e.outside(sameGuard, "the guard went on: %v", sameGuard)
	e.outside(panics == 0, "%d internal errors", panics)
	e.outside(answered > 0, "it answered after %.2f s", answered.Seconds())
	if p := guard.process(e); p != nil && p.Groups != nil && p.Groups.Peak >= 0 {
		e.outside(p.Groups.Peak <= p.Groups.Memory, "it used %d bytes of %d", p.Groups.Peak, p.Groups.Memory)
	}
	return e.line()
}

// KeepProbes keep a connection for a time: the control, and the one that is cut.
func KeepProbes(host string) (control, cut []Probe) {
	a, b := &batch{}, &batch{}
	a.add("control.kept", "tls %s keep=1s limit=10s", host)
	b.add("cut", "tls %s keep=8s limit=15s", host)
	return a.all, b.all
}

// NotCut is the line of B27 where there was no connection to cut.
func NotCut(worker string, live bool) Line {
	l := notTested("B27", worker, "its policy names no host with port 443")
	if !live {
		l.Why = "it needs a connection that the policy allows: add `--live`"
	}
	l.Copy = true
	return l
}

// Cut judges what a live denial did to a connection in use (B27): cut is how many the
// guard says that it ended.
func Cut(worker, host string, control, seen Seen, unseen string, cut int) Line {
	e := inCopy("B27", worker)
	e.tried("a connection to %s while the line was denied live", host)
	if unseen != "" {
		e.miss("inside: %s", unseen)
	}
	e.works(control, "control.kept", "without the denial it stayed for a second", "kept")
	if r, ok := seen["cut"]; ok {
		if slices.Contains([]string{"kept", "ECONNRESET", "EOF", "EPIPE"}, r.Seen) {
			e.inside(r.Seen != "kept", "with it: %s", saw(r))
		} else {
			e.miss("the connection could not be made: %s", saw(r))
		}
	}
	if unseen == "" { // else there may have been none
		e.outside(cut > 0, "the guard ended %d connections", cut)
	}
	return e.line()
}

// With adds the lines of a copy. They take the place of those that said that what they
// test is disruptive.
func With(lines, more []Line) []Line {
	lines = slices.DeleteFunc(lines, func(l Line) bool {
		return l.Verdict == NotTested && l.Why == disruptiveHere && slices.ContainsFunc(more, func(m Line) bool { return m.Promise == l.Promise })
	})
	return append(lines, more...)
}

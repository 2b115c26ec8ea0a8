package app

import (
	"context"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/sockets"
	"github.com/llmdo/workshop/internal/ports"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// portsLook collects what is known of the ports of this machine.
type portsLook struct {
	*Env // without events
	doctor.PortsSeen
	records []*facts.Record
	states  map[ProjectRef]doctor.PortState // of projects that some engine has
	partial bool                            // an engine didn't answer
	docker  bool                            // Docker publishes here
	// unread are files of known projects that can't be read, and why.
	unread []string
	// blind is why sockets can't be seen; empty: they are.
	blind string
}

// lookAtPorts looks at the registry and at the engines that run here; whole: also at the
// files of known projects and at the processes that have sockets.
func (env *Env) lookAtPorts(ctx context.Context, whole bool) (*portsLook, error) {
	quiet := *env
	quiet.Events = nil
	quiet.Settings.File, quiet.Settings.EnvFiles, quiet.Settings.Project = "", nil, "" // of this project alone
	l := &portsLook{Env: &quiet, states: map[ProjectRef]doctor.PortState{}}
	l.UID, l.Unprivileged = os.Getuid(), sockets.FirstUnprivileged()
	leases, err := env.leases().Leases()
	if err != nil {
		if l.Registry = registryFile(err); l.Registry == nil {
			return nil, err
		}
	}
	l.records, _ = facts.Records(env.recordsDir()) // the state's findings say what is wrong there
	for _, p := range env.enginesHere(l.records) {
		l.ask(ctx, p)
	}
	l.claim(ctx, leases, whole)
	l.listen(ctx, whole)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return l, nil
}

// ask asks one engine what runs there, and at which ports.
func (l *portsLook) ask(ctx context.Context, at facts.Place) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	e, err := l.engineAt(ctx, at)
	if err != nil {
		l.partial = l.partial || !isAbsent(err)
		return
	}
	defer e.Close()
	list, err := e.List(ctx)
	l.partial = l.partial || err != nil && !isAbsent(err)
	here := err == nil && publishesHere(ctx, e)
	for _, p := range list {
		if !l.owns(at.Engine, p.Directory, recordOf(l.records, p.Project, p.Directory)) {
			continue
		}
		for _, c := range p.Containers {
			if c.State == "running" {
				l.runs(p, c, here)
			}
		}
	}
	if l.docker = l.docker || here && at.Endpoint != ""; !here {
		return
	}
	if others, ok := e.(engine.Foreigners); ok {
		foreign, _ := others.Foreigners(ctx)
		for _, f := range foreign {
			if at, err := netip.ParseAddrPort(f.Address); err == nil {
				l.Foreign = append(l.Foreign, doctor.PublishedAt{Project: f.Project, Container: f.Container, At: at})
			}
		}
	}
}

func (l *portsLook) runs(p engine.Listed, c engine.Container, here bool) {
	t := ProjectRef{Name: p.Project, Dir: p.Directory}
	if !here {
		l.states[t] = doctor.PortUnknown
		return
	}
	l.states[t] = doctor.PortUp
	for _, port := range c.Ports {
		address, _, _ := strings.Cut(port, "->")
		if at, err := netip.ParseAddrPort(address); err == nil {
			l.Published = append(l.Published, doctor.PublishedAt{Project: p.Project, Dir: p.Directory, Container: c.Name, At: at})
		}
	}
}

// state is that of a project that has ports.
func (l *portsLook) state(t ProjectRef) doctor.PortState {
	r := recordOf(l.records, t.Name, t.Dir)
	switch state, known := l.states[t]; {
	case known:
		return state
	case l.partial && r != nil && !r.Down:
		return doctor.PortUnknown
	case !Exists(t.Dir):
		return doctor.PortGone
	}
	return doctor.PortDown
}

// claim collects the ports of the registry; with files, those of the files of known
// projects, too. What runs is as its last `up` was, whatever the file says now.
func (l *portsLook) claim(ctx context.Context, leases []ports.Lease, files bool) {
	projects := map[ProjectRef][]doctor.PortClaim{}
	var order []ProjectRef
	know := func(t ProjectRef) {
		if _, known := projects[t]; !known {
			projects[t], order = nil, append(order, t)
		}
	}
	for _, x := range leases {
		t := ProjectRef{Name: x.Project, Dir: x.Dir}
		know(t)
		projects[t] = append(projects[t], doctor.PortClaim{Lease: x, Leased: true})
	}
	for _, r := range l.records {
		if files && !r.OneOff && r.ModelOf == "" {
			know(ProjectRef{Name: r.Project, Dir: r.Dir})
		}
	}
	for _, t := range order {
		claims, state := projects[t], l.state(t)
		file := l.fileOf(t)
		ordinary := l.engineOf(t.Name) == promise.Namespace || !l.docker
		if files && file != "" && state != doctor.PortGone {
			w, err := l.quietWorkshop(ctx, ProjectRef{File: file})
			switch {
			case err != nil:
				l.unread = append(l.unread, err.Error())
			case state == doctor.PortDown:
				claims = byFile(t, claims, w)
				fallthrough
			default:
				ordinary = ordinary || w.Isolation.V == workshop.IsolationNamespace
			}
		}
		for _, c := range claims {
			c.State, c.File = state, file
			c.Ordinary = ordinary && l.UID > 0 && runtime.GOOS == "linux"
			l.Claims = append(l.Claims, c)
		}
	}
}

// byFile compares the leases of a project that is down with its file: what the next `up`
// takes is what the file reserves, and what was chosen for the ports that it leaves open.
func byFile(t ProjectRef, leased []doctor.PortClaim, w *workshop.Workshop) (claims []doctor.PortClaim) {
	wanted := portLeases(w, t, nil)
	for _, c := range leased {
		i := slices.IndexFunc(wanted, func(p ports.Lease) bool { return p.Key == c.Key })
		switch {
		case i < 0 || wanted[i].Reserved != c.Reserved:
			c.Stale = true
		case c.Reserved:
			c.Port, c.Host = wanted[i].Port, wanted[i].Host
		default:
			c.Host = wanted[i].Host
		}
		if claims = append(claims, c); !c.Stale {
			wanted = slices.Delete(wanted, i, i+1)
		}
	}
	for _, p := range wanted {
		if p.Reserved {
			claims = append(claims, doctor.PortClaim{Lease: p})
		}
	}
	return claims
}

// fileOf is the workshop file of a known project; empty: there is none.
func (l *portsLook) fileOf(t ProjectRef) string { return knownFile(l.records, t) }

func knownFile(records []*facts.Record, t ProjectRef) string {
	if file := recordedFile(recordOf(records, t.Name, t.Dir)); file != "" && Exists(file) {
		return file
	}
	file, _ := fileIn(t.Dir)
	return file
}

// recordedFile is the workshop file of a record; empty: it has another name.
func recordedFile(r *facts.Record) string {
	if r == nil {
		return ""
	}
	i := slices.IndexFunc(r.Own, func(f string) bool { return slices.Contains(fileNames, filepath.Base(f)) })
	if i < 0 {
		return ""
	}
	return r.Own[i]
}

// listen finds out who listens where; owners: also which processes do.
func (l *portsLook) listen(ctx context.Context, owners bool) {
	var err error
	if l.Listeners, err = listeners(ctx, func(netip.AddrPort) bool { return owners }); err != nil {
		l.blind = err.Error()
	}
	for i := range l.Claims {
		c := &l.Claims[i]
		c.Busy = l.busy(c)
	}
}

// listeners are the programs that listen on addresses of this machine. Those that are of
// interest are looked for among the processes.
func listeners(ctx context.Context, interest func(netip.AddrPort) bool) (out []doctor.Listener, err error) {
	all, err := sockets.All()
	all = slices.DeleteFunc(all, func(s sockets.Socket) bool { return !s.Listens })
	inodes, names := map[uint64]bool{}, map[uint32]string{}
	for _, s := range all {
		if interest(s.At) {
			inodes[s.Inode] = true
		}
		if _, asked := names[s.UID]; asked {
			continue
		}
		names[s.UID] = ""
		if u, err := user.LookupId(strconv.FormatUint(uint64(s.UID), 10)); err == nil {
			names[s.UID] = u.Username
		}
	}
	known := map[uint64]sockets.Owner{}
	if len(inodes) > 0 {
		known = sockets.Owners(ctx, inodes)
	}
	for _, s := range all {
		o := known[s.Inode]
		out = append(out, doctor.Listener{At: s.At, UID: int(s.UID), User: names[s.UID], PID: o.PID, Program: o.Program})
	}
	return out, err
}

// busy reports whether a program has the address of a claim. What the sockets don't tell
// is tried: they aren't seen, a port is only bound, or one of IPv6 has IPv4's, too.
func (l *portsLook) busy(c *doctor.PortClaim) bool {
	try := l.blind != "" || c.State == doctor.PortUp
	for _, s := range l.Listeners {
		if ports.Meet(s.At, c.Address()) {
			return true
		}
		try = try || s.At.Port() == c.Port && s.At.Addr() == netip.IPv6Unspecified()
	}
	return try && c.State != doctor.PortGone && !canListen(c.Address().String())
}

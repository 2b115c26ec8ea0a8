package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/hostfirewall"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/promise"
)

// HostRulesRequest is what HostRules are for.
type HostRulesRequest struct {
	Tool hostfirewall.Tool
	// Engine is the only one that is asked; empty: all of this machine's.
	Engine string
	// Resolvers are those that an engine uses for its containers; nil: they are found out.
	Resolvers []netip.Addr
}

// HostRules gathers what the firewall of this machine can hold of the workshops of this user
// that are up. What isn't known is an error: rules that lack a workshop, or have one that
// has changed since, would promise what they don't hold.
func (env *Env) HostRules(ctx context.Context, o HostRulesRequest) (*hostfirewall.Rules, error) {
	records, err := facts.Records(env.recordsDir())
	if err != nil {
		return nil, Fail(CodeFailed, "%w", err)
	}
	all, quiet, err := env.listEngines(ctx, ListOptions{Engine: o.Engine}, records)
	switch {
	case err != nil:
		return nil, err
	case len(quiet.places) > 0:
		return nil, Fail(CodeEngine, "an engine doesn't answer: rules would lack its workshops").Hint("see why with `workshop doctor`, or leave it out: `workshop --engine %s firewall export`", promise.Namespace)
	}
	sortfunc.Stable(all, func(x, y onEngine) int {
		return cmp.Or(cmp.Compare(x.Project, y.Project), cmp.Compare(x.Directory, y.Directory))
	})
	h := &hostRules{Env: env, o: o, records: records, out: hostfirewall.Rules{UID: max(os.Getuid(), 0)}, beyond: map[uint16]bool{}}
	for _, l := range all {
		if !ValidName(l.Project) || !env.owns(l.engine, l.Directory, recordOf(records, l.Project, l.Directory)) {
			continue
		}
		if err := h.add(ctx, l); err != nil {
			return nil, err
		}
	}
	// A number that is open elsewhere by a line isn't closed for another line.
	h.out.Ports = slices.DeleteFunc(h.out.Ports, func(p hostfirewall.Port) bool { return h.beyond[p.Number] })
	switch {
	case !h.up:
		return nil, Fail(CodeFailed, "no workshop with a network is up: there is nothing to hold").Hint("`workshop up`, then export; `--remove` removes rules of before")
	case h.out.Empty(), o.Tool == hostfirewall.PF && len(h.out.Ports) == 0:
		return nil, Fail(CodeRefused, "nothing can be held here: %s", strings.Join(append(h.out.NotHeld, pfHolds(o.Tool)...), "; "))
	}
	return &h.out, nil
}

func pfHolds(t hostfirewall.Tool) []string {
	if t == hostfirewall.PF {
		return []string{"pf holds published ports alone, and there is none"}
	}
	return nil
}

// hostRules are the rules as they are gathered.
type hostRules struct {
	*Env
	o       HostRulesRequest
	records []*facts.Record
	out     hostfirewall.Rules
	up      bool // some workshop with a network is
	beyond  map[uint16]bool
}

// add gathers what is of one project.
func (h *hostRules) add(ctx context.Context, l onEngine) error {
	i := slices.IndexFunc(l.Containers, func(c engine.Container) bool {
		return c.Role == compose.RoleGuard.String() && c.State == "running"
	})
	running := slices.ContainsFunc(l.Containers, func(c engine.Container) bool { return c.State == "running" })
	switch r := recordOf(h.records, l.Project, l.Directory); {
	case l.engine == promise.Process && running:
		h.notHeld("project %s: in process mode its tools are programs of yours like others", l.Project)
		return nil
	case i < 0:
		return nil
	case r != nil && r.OneOff:
		h.notHeld("project %s: it is a run, which ends by itself", l.Project)
		return nil
	}
	h.up = true
	file := knownFile(h.records, ProjectRef{Name: l.Project, Dir: l.Directory})
	if file == "" {
		return Fail(CodeInvalid, "project %s is up, and its workshop.yaml isn't in %s any more", l.Project, Printable(l.Directory)).
			Hint("`workshop -p %s down`, or put it back", l.Project)
	}
	own := *h.Env
	own.Settings.Project, own.Settings.File, own.Settings.Engine = l.Project, file, l.engine
	own.Warnings = WarnNone
	v, err := own.viewPolicy(ctx, "")
	if err != nil {
		return err
	}
	defer v.close()
	switch flags := "-f " + shellquote.Path(file) + " -p " + l.Project; {
	case v.State == nil:
		return v.Missing
	case v.Changed():
		return Fail(CodeRefused, "project %s: its guard has other lines than %s", l.Project, Printable(file)).
			Hint("`workshop %s firewall reload`, or `up`, then export", flags)
	}
	return h.guard(ctx, &hostGuard{hostRules: h, v: v, file: file, container: l.Containers[i]})
}

func (h *hostRules) notHeld(format string, args ...any) {
	h.out.NotHeld = append(h.out.NotHeld, fmt.Sprintf(format, args...))
}

// hostGuard is one guard that is up.
type hostGuard struct {
	*hostRules
	v         *PolicyView
	file      string
	container engine.Container
}

func (h *hostRules) guard(ctx context.Context, g *hostGuard) error {
	project := g.v.engine.Name
	if err := g.here(ctx); err != nil {
		return err
	}
	w, err := g.v.engine.Witness(ctx, project, compose.GuardService, g.v.engine.Dir)
	if err != nil {
		return EngineError(err)
	}
	defer w.Close()
	beyond := g.ports()
	if h.o.Tool == hostfirewall.PF {
		return nil
	}
	upstreams, err := g.upstreams(ctx, len(w.Links) > 0)
	if err != nil {
		return err
	}
	lines, err := g.lines(ctx)
	if err != nil {
		return err
	}
	for _, link := range w.Links {
		if _, err := net.InterfaceByName(link.Bridge); err != nil {
			return Fail(CodeRefused, "project %s: the bridge of its network, %s, isn't in this machine's network: an engine without root, or in a virtual machine, has one of its own", project, Printable(link.Bridge)).
				Hint("export where the engine has its network; there, rules of this machine can't hold it")
		}
		h.out.Bridges = append(h.out.Bridges, hostfirewall.Bridge{
			Project: project, Interface: link.Bridge, Guard4: link.Addr4, Guard6: link.Addr6, Upstreams: upstreams, Lines: lines, Beyond: beyond,
		})
	}
	if len(w.Links) > 0 {
		return nil
	}
	p := hostfirewall.Programs{Projects: []string{project}, Upstreams: upstreams, Lines: lines}
	if err := identify(w.PID, &p); err != nil {
		h.notHeld("what the guard of project %s connects to: %v", project, err)
		return nil
	}
	h.together(p)
	return nil
}

// here refuses an engine whose packets this machine doesn't see.
func (g *hostGuard) here(ctx context.Context) error {
	if !g.v.engine.Capabilities().Compose {
		return nil
	}
	info, err := g.v.engine.Info(ctx)
	switch {
	case err != nil:
		return EngineError(err)
	case info.Local, g.o.Tool == hostfirewall.PF && publishesHere(ctx, g.v.engine):
		return nil
	}
	return Fail(CodeRefused, "project %s is on an engine that isn't on this machine (%s): its packets don't pass here", g.v.engine.Name, Printable(info.Endpoint)).
		Hint("export on the engine's machine, or bring the project down: `workshop -p %s down`", g.v.engine.Name)
}

// together adds programs to those that the kernel can't tell them from.
func (h *hostRules) together(p hostfirewall.Programs) {
	i := slices.IndexFunc(h.out.Programs, func(o hostfirewall.Programs) bool { return o.UID == p.UID && o.Cgroup == p.Cgroup })
	if i < 0 {
		h.out.Programs = append(h.out.Programs, p)
		return
	}
	o := &h.out.Programs[i]
	o.Projects = append(o.Projects, p.Projects...)
	for _, x := range p.Upstreams {
		o.Upstreams = appendOpening(o.Upstreams, x)
	}
	for _, x := range p.Lines {
		o.Lines = appendOpening(o.Lines, x)
	}
}

// appendOpening adds what no other one has.
func appendOpening(all []hostfirewall.Opening, o hostfirewall.Opening) []hostfirewall.Opening {
	if slices.ContainsFunc(all, func(x hostfirewall.Opening) bool {
		return x.To == o.To && (x.UDP || !o.UDP) && (o.Named || !x.Named) && slices.Equal(x.Ports, o.Ports)
	}) {
		return all
	}
	return append(all, o)
}

// ports gathers the published ports, and returns the guard's own of those that are
// published beyond loopback.
func (g *hostGuard) ports() (beyond []hostfirewall.Port) {
	project := g.v.engine.Name
	for _, text := range g.container.Ports {
		address, target, _ := strings.Cut(strings.TrimSuffix(text, "/tcp"), "->")
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			continue
		}
		listen, _ := strconv.ParseUint(target, 10, 16)
		why := fmt.Sprintf("project %s%s: %s", project, g.portLine(uint16(listen)), at)
		if at.Addr().IsLoopback() {
			g.out.Ports = append(g.out.Ports, hostfirewall.Port{Number: at.Port(), Why: why})
			continue
		}
		g.beyond[at.Port()] = true
		if !slices.ContainsFunc(beyond, func(p hostfirewall.Port) bool { return p.Number == uint16(listen) }) {
			beyond = append(beyond, hostfirewall.Port{Number: uint16(listen), Why: why})
		}
	}
	return beyond
}

// portLine is where the file has a port of the guard's.
func (g *hostGuard) portLine(listen uint16) string {
	i := slices.IndexFunc(g.v.policy.Publish, func(p firewall.Publish) bool { return p.Listen == listen })
	if i < 0 {
		return ""
	}
	p := g.v.policy.Publish[i]
	if at := g.v.c.Compiled.Port(compose.PortKey{Worker: p.Worker, Target: p.Target}); at != nil {
		return ", " + placeOf(at.At.Range)
	}
	return ", worker " + p.Worker
}

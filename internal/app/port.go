package app

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/ports"
)

// PublishedPort is a worker's port and where it is published on the host.
type PublishedPort struct {
	Worker  string `json:"worker"`
	Target  uint16 `json:"target"`
	Address string `json:"address"` // "127.0.0.1:8080"
}

// PublishedPorts are those of a worker that runs, by target; asked as in [Running.Look].
// A target other than 0 selects one; without it the error says which there are.
func (env *Env) PublishedPorts(ctx context.Context, worker string, target uint16, asked bool) ([]PublishedPort, error) {
	r, seen, err := env.observeServices(ctx, []string{worker}, asked, compose.RoleWorker)
	if err != nil {
		return nil, err
	}
	r.Close()
	w, _ := env.quietWorkshop(ctx, r.ProjectRef) // what the last `up` granted tells, too
	var granted map[string]facts.Grant
	if record, err := env.Record(r.Name); err == nil && record != nil {
		granted = record.Granted
	}
	var all, of []PublishedPort
	guard := false
	for _, c := range statusOf(seen, w, env.Ports(r.ProjectRef), granted) {
		guard = guard || c.Role == compose.RoleGuard.String() && c.State == "running"
		for _, text := range c.Ports {
			address, to, _ := strings.Cut(text, "->")
			number, err := strconv.ParseUint(strings.TrimSuffix(to, "/tcp"), 10, 16)
			if c.Service != worker || err != nil {
				continue
			}
			p := PublishedPort{worker, uint16(number), address}
			if all = append(all, p); p.Target == target {
				of = append(of, p)
			}
		}
	}
	sortfunc.Stable(all, func(x, y PublishedPort) int { return int(x.Target) - int(y.Target) })
	switch {
	case target == 0:
		return all, nil
	case len(of) > 0:
		return of, nil
	}
	f := Fail(CodeFailed, "%s publishes no port %d", worker, target)
	switch {
	case !guard && r.Capabilities().Contained:
		return nil, Fail(CodeFailed, "no port of %s is published: the guard of project %s doesn't run", worker, r.Name).Hint("start it with `workshop up`")
	case len(all) == 0:
		return nil, f.Hint("publish it under `ports` of %s, as in `\"0:%d\"`, and run `workshop up`", worker, target)
	}
	return nil, f.Hint("published: %s", portTargets(all))
}

func portTargets(all []PublishedPort) string {
	targets := make([]string, len(all))
	for i, p := range all {
		targets[i] = strconv.Itoa(int(p.Target))
	}
	return strings.Join(targets, ", ")
}

// ReleasePorts gives up the leases of a worker's ports, of all or of one target. The next
// `up` chooses anew; what its file reserves, it registers again. A number that a file
// reserves isn't given up while the workshop is up.
func (env *Env) ReleasePorts(ctx context.Context, worker string, target uint16) error {
	t, err := env.Find(ctx)
	if err != nil {
		return err
	}
	ch, err := env.Change(ctx, t.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	is := func(l ports.Lease) bool {
		return t.leased(l) && l.Worker == worker && (target == 0 || l.Target == target)
	}
	up := false
	if all, err := env.leases().Leases(); err == nil && slices.ContainsFunc(all, func(l ports.Lease) bool { return is(l) && l.Reserved }) {
		seen, err := env.lookAtPorts(ctx, false)
		if err != nil {
			return err
		}
		up = seen.state(ProjectRef{Name: t.Name, Dir: t.Dir}) == doctor.PortUp
	}
	var gone []ports.Lease
	err = env.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
		return slices.DeleteFunc(all, func(l ports.Lease) bool {
			going := is(l) && !(up && l.Reserved)
			if going {
				gone = append(gone, l)
			}
			return going
		}), nil
	})
	if err != nil {
		return registryError(err)
	}
	if len(gone) == 0 && up {
		return Fail(CodeRefused, "project %s is up, and its file reserves that port of %s", t.Name, worker).
			Hint("end it first: `workshop %sdown`", env.ProjectFlags())
	}
	if len(gone) == 0 {
		what := "no open port"
		if target != 0 {
			what = fmt.Sprintf("no open port %d", target)
		}
		return Fail(CodeFailed, "%s of project %s has %s that a number was chosen for", worker, t.Name, what)
	}
	for _, l := range gone {
		next := "the next `up` chooses one"
		if l.Reserved {
			next = "the next `up` registers what its file says"
		}
		env.say("%s %d: gives up %d of the host; %s", worker, l.Target, l.Port, next)
	}
	return nil
}

package cli

import (
	"context"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/control"
)

// fwView is the network policy of a workshop: what the file says, and what the
// guard does, where one runs.
type fwView struct {
	c *app.Project
	// file are the rooms as the file has them, with the values of variables, in
	// order of their names; effective the same with what is live in the guard.
	file, effective []firewall.RoomPolicy
	// none are the workers without a network.
	none []string
	// state is nil where no guard answers; missing then says why.
	state   *control.State
	missing error
	engine  *app.Running // nil where none answers
}

// firewallView reads the file, which must be valid, and asks the guard, which
// need not be there. The caller closes the view.
func (a *program) firewallView(ctx context.Context) (*fwView, error) {
	c, err := a.Compile(ctx)
	if err != nil {
		return nil, err
	}
	v := &fwView{c: c}
	for i := range c.Workshop.Workers {
		if name := c.Workshop.Workers[i].Name; c.Compiled.RoomOf[name] == "" {
			v.none = append(v.none, name)
		}
	}
	if c.Compiled.Policy != nil {
		for _, r := range c.Compiled.Policy.Rooms {
			r.Allow, r.Deny = filled(r.Allow), filled(r.Deny)
			v.file = append(v.file, r)
		}
	}
	v.ask(ctx, a)
	v.overlay()
	return v, nil
}

func (v *fwView) close() {
	if v.engine != nil {
		v.engine.Close()
	}
}

// ask asks the guard what it does.
func (v *fwView) ask(ctx context.Context, a *program) {
	var e *app.Running
	if e, v.missing = a.Connect(ctx, v.c.ProjectRef, nil); v.missing != nil {
		return
	}
	v.engine = e
	v.missing = a.WithGuard(ctx, e, func(c *control.Client) error {
		s, err := app.GuardState(c)
		if err == nil {
			v.state = &s
		}
		return err
	})
}

// overlay puts what is live over the file.
func (v *fwView) overlay() {
	p := &firewall.Policy{Rooms: v.file}
	if v.state == nil {
		v.effective = v.file
		return
	}
	v.effective = p.Overlay(v.live(""), func(room string) bool {
		return v.state.Learning[room].After(time.Now())
	}).Rooms
}

// live are the live changes that are about a room, or all.
func (v *fwView) live(room string) []firewall.Live {
	var out []firewall.Live
	if v.state == nil {
		return nil
	}
	for _, l := range v.state.Live {
		if room == "" || l.Room == "" || l.Room == room {
			if l.Rule.Line == "" {
				l.Rule.Line = firewall.LiveLine
			}
			out = append(out, l)
		}
	}
	return out
}

// changed tells that the guard has another policy than the file.
func (v *fwView) changed() bool {
	return v.state != nil && (v.c.Compiled.Policy == nil || v.state.Digest != firewall.Digest(v.c.Compiled.Policy))
}

// rulesetOf is the ruleset that a room has with a policy.
func rulesetOf(r firewall.RoomPolicy) firewall.Ruleset {
	return firewall.NewRuleset(firewall.RulesetOptions{Ports: firewall.RoomPorts(r), Open: r.Mode == firewall.Open})
}

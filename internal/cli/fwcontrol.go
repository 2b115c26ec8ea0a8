package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// controlTime bounds a talk with a guard that is to change something.
const controlTime = 10 * time.Second

// withGuard speaks with the guard of the project. One that isn't there, doesn't
// answer or refuses is a failure that says what to do.
func (a *program) withGuard(ctx context.Context, e engine.Engine, t target, talk func(*control.Client) error) error {
	within, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	conn, err := e.Control(within, t.project, t.dir)
	if err == nil {
		c := control.NewClient(conn)
		err = talk(c)
		c.Close() // all has been said
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return app.Fail(app.CodeFailed, "the guard of project %s doesn't answer within %v", t.project, controlTime).
			hint("`workshop up` finds out whether it hangs, and stops it then; the next one starts another")
	}
	if refused, ok := errors.AsType[*control.RefusedError](err); ok {
		return app.Fail(app.CodeRefused, "%w", refused)
	}
	if missing, ok := errors.AsType[*engine.NotRunningError](err); ok {
		return a.noGuard(ctx, e, t, missing)
	}
	return engineError(err)
}

// noGuard says why there is no guard to speak with.
func (a *program) noGuard(ctx context.Context, e engine.Engine, t target, missing *engine.NotRunningError) error {
	seen, err := e.Observe(ctx, t.project)
	if err != nil {
		return engineError(err)
	}
	if err := engine.CheckDirectory(seen, t.dir); err != nil {
		return engineError(err)
	}
	needed := slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return c.NetworkOf != "" })
	switch {
	case len(seen.Containers) == 0:
		return notUp(t)
	case missing.State == "" && !needed:
		return app.Fail(app.CodeRefused, "no worker of project %s has a network", t.project).Hint("%s", networkHint)
	}
	state := "isn't there"
	if missing.State != "" {
		state = "doesn't run (" + missing.State + ")"
	}
	return app.Fail(app.CodeFailed, "the guard of project %s %s; its workers reach nothing", t.project, state).
		hint("`workshop up` repairs it")
}

const networkHint = "to give workers one, write in workshop.yaml `network: {mode: restricted, allow: [HOST]}`, and run `workshop up`"

// guardState asks the guard what it does now.
func guardState(c *control.Client) (control.State, error) {
	var s control.State
	err := c.Do(control.Request{Op: control.OpState}, &s)
	return s, err
}

// roomLines are the lines that a room goes by.
type roomLines struct {
	control.RoomState
	// known is false where the workshop file isn't what the guard has any more:
	// then only live lines are here.
	known       bool
	allow, deny []firewall.Rule
	live        []firewall.Live
}

// roomsOf gives the rooms that a change is about: the worker's, or all.
func (a *program) roomsOf(ctx context.Context, t target, s control.State, worker string) []roomLines {
	var rooms []roomLines
	policy := a.filePolicy(ctx, t, s.Digest)
	for _, r := range s.Rooms {
		if worker != "" && !slices.Contains(r.Workers, worker) {
			continue
		}
		room := roomLines{RoomState: r}
		for _, l := range s.Live {
			if l.Room == "" || l.Room == r.Room {
				room.live = append(room.live, l)
			}
		}
		if policy != nil {
			room.known = true
			room.addLines(policy)
		}
		rooms = append(rooms, room)
	}
	return rooms
}

func (r *roomLines) addLines(p *firewall.Policy) {
	for i := range p.Rooms {
		if p.Rooms[i].Room == r.Room {
			r.allow, r.deny = filled(p.Rooms[i].Allow), filled(p.Rooms[i].Deny)
		}
	}
}

// filePolicy is the policy of the workshop file, if it is the one with that
// digest; else nil.
func (a *program) filePolicy(ctx context.Context, t target, digest string) *firewall.Policy {
	w := a.quietWorkshop(ctx, t)
	if w == nil {
		return nil
	}
	c, err := compose.Compile(w)
	if err != nil || c.Policy == nil || firewall.Digest(c.Policy) != digest {
		return nil
	}
	return c.Policy
}

// filled puts the values of variables into lines, as the guard does.
func filled(rules []firewall.Rule) []firewall.Rule {
	out := slices.Clone(rules)
	for i := range out {
		r := &out[i]
		if r.Template == "" {
			continue
		}
		r.Template = ""
		if p, ok := addressRange(r.Value); ok && strings.Contains(r.Value, "/") {
			r.CIDR = p
			continue
		}
		// A pattern for which any_tenant is needed comes with its error.
		r.Host, _ = firewall.ParseHostPattern(r.Value)
	}
	return out
}

// workersText is "one", "one and two", "one, two and three".
func workersText(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// whenText is a time of day here, with its zone, and the day where that isn't
// today.
func whenText(t time.Time) string {
	t = t.Local()
	if now := time.Now(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04 MST")
	}
	return t.Format("15:04:05 MST")
}

// lengthText is a duration as a person writes it: "30m", "1h30m".
func lengthText(d time.Duration) string {
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

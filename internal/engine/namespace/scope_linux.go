package namespace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/systemd"
)

// scopeTime is how long systemd may take for a scope; it takes milliseconds.
const scopeTime = 10 * time.Second

// groups is where the groups of a new supervisor will be.
type groups struct {
	can cgroup.Limits
	err error // *cgroup.Unavailable if some limits can't be enforced there
	// scope: it is moved into a scope of the user's systemd first.
	scope bool
}

// findGroups finds the groups for a new supervisor. Without root that is a scope of the
// user's systemd, where it runs: of a login session's groups none is the user's, and
// those of a terminal's unit end with it. In a unit that was delegated to this program
// it stays.
func (e *Engine) findGroups() groups {
	own := groupsOf(cgroup.Find())
	if !e.rootless || own.inUnit {
		return own.groups
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	m, err := systemd.Dial(ctx, systemd.RuntimeDir(e.opts.Lookup))
	if err != nil {
		own.err = withoutSystemd(own.err, err)
		return own.groups
	}
	defer m.Close()
	scope := groupsOf(cgroup.FindInScope())
	if scope.err != nil && own.err == nil {
		return own.groups
	}
	scope.scope = scope.err == nil
	return scope.groups
}

// withoutSystemd adds to the hint of missing limits why there is no scope.
func withoutSystemd(missing, err error) error {
	u, ok := errors.AsType[*cgroup.Unavailable](missing)
	if !ok || errors.Is(err, systemd.ErrNone) {
		return missing
	}
	return &cgroup.Unavailable{Missing: u.Missing, Do: fmt.Sprintf("%v: see `systemctl --user status`. %s", err, u.Do)}
}

type foundGroups struct {
	groups
	inUnit bool
}

func groupsOf(p *cgroup.Parent, err error) foundGroups {
	if err != nil {
		return foundGroups{groups: groups{err: err}}
	}
	return foundGroups{groups{can: p.Can(), err: p.Require()}, p.InUnit()}
}

// enterScope moves a supervisor, which waits for it, into a scope of its own. It must
// not be in its groups yet.
func (e *Engine) enterScope(project string, pid int) (name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	m, err := systemd.Dial(ctx, systemd.RuntimeDir(e.opts.Lookup))
	if err != nil {
		return "", refuseScope(err)
	}
	defer m.Close()
	name = fmt.Sprintf("workshop-%s-%d.scope", project, pid)
	if err := m.StartScope(ctx, systemd.Scope{Name: name, Description: "workshop " + project, PID: pid}); err != nil {
		return "", refuseScope(err)
	}
	return name, nil
}

// sayScope says once, where a workshop starts, that it is in a scope.
func (e *Engine) sayScope(name string) {
	if name != "" && e.opts.Say != nil {
		e.opts.Say(scopeLine(name, e.opts.Attached || systemd.Lingers()))
	}
}

// scopeLine says where the workshop runs, and until when.
func scopeLine(name string, stays bool) string {
	line := "limits: by systemd, in your scope " + name
	if !stays {
		line += "; it ends when you log out, unless you run `loginctl enable-linger`"
	}
	return line
}

// scopeFinding reports where limits come from. Nothing is refused for it.
func scopeFinding(lingers bool) engine.Finding {
	f := engine.Finding{Name: "systemd", Held: lingers, Meaning: "limits are those of a scope of your systemd, which goes on after you log out"}
	if !lingers {
		f.Meaning = "limits are those of a scope of your systemd, which ends when you log out"
		f.Do = "let it go on: `loginctl enable-linger`"
	}
	return f
}

func refuseScope(err error) error {
	return &engine.RefusedError{
		Promise: "B5", Reason: "limits can't be enforced: " + err.Error(),
		Do: "run `systemctl --user status` to see why, or start it in a scope: `systemd-run --user --scope -p Delegate=yes -- workshop up`",
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// holderTime bounds the search for who holds a port.
const holderTime = 5 * time.Second

// heldPortError is a port that another workshop of the user publishes.
type heldPortError struct {
	*engine.PortTakenError
	by *facts.Record
	// worker publishes it; empty: the other's file doesn't say.
	worker string
}

func (e *heldPortError) failure(code int) *Failure {
	by := "project " + e.by.Project + " (" + Printable(e.by.Dir) + ")"
	if e.worker != "" {
		by = "worker " + e.worker + " of " + by
	}
	taken := Fail(code, "port %s, which %s publishes, is taken by %s", e.Address, e.Worker, by)
	if e.Target != 0 {
		return taken.Hint("%s; or end the other: `workshop -p %s down`", releaseHint(e.PortTakenError), shellquote.Quote(e.by.Project))
	}
	return taken.
		Hint("publish another port under `ports` of %s, or end the other: `workshop -p %s down`", e.Worker, shellquote.Quote(e.by.Project))
}

// releaseHint says how to have another number for a port that the file leaves open.
func releaseHint(e *engine.PortTakenError) string {
	return fmt.Sprintf("to have another one chosen by the next `up`: `workshop port --release %s %d`", e.Worker, e.Target)
}

// Unwrap returns the engine's error.
func (e *heldPortError) Unwrap() error { return e.PortTakenError }

// namePortHolder adds to the error of a port in use which other workshop of the user
// publishes it, if the same engine shows that, or which program listens there.
func (env *Env) namePortHolder(ctx context.Context, e engine.Engine, err error) error {
	taken, ok := errors.AsType[*engine.PortTakenError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderTime)
	defer cancel()
	all, _ := facts.Records(env.recordsDir()) // without those that can't be read
	for _, r := range all {
		if r.Down {
			continue
		}
		seen, problem := e.Observe(ctx, r.Project)
		if problem != nil {
			continue
		}
		t := ProjectRef{Name: r.Project, Dir: r.Dir, File: recordedFile(r)}
		w, _ := env.quietWorkshop(ctx, t)
		for _, c := range statusOf(seen, w, env.Ports(t), r.Granted) {
			if !slices.ContainsFunc(c.Ports, func(at string) bool { return strings.Contains(at, ":"+taken.Port+"->") }) {
				continue
			}
			held := &heldPortError{PortTakenError: taken, by: r}
			if c.Role == compose.RoleWorker.String() {
				held.worker = c.Service
			}
			return held
		}
	}
	if at, bad := netip.ParseAddrPort(taken.Address); bad == nil && publishesHere(ctx, e) {
		seen, _ := listeners(ctx, func(l netip.AddrPort) bool { return l.Port() == at.Port() })
		if by := (doctor.PortsSeen{Listeners: seen}).Holder(at); by != "" {
			taken.By = ": " + Printable(by)
		}
	}
	return err
}

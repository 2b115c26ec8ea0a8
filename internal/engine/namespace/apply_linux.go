package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// Apply carries out the plan, as [engine.Runner] does. It refuses what this engine
// doesn't support before the first step. At the end it ends a supervisor without
// containers, and removes the state of a project without objects.
func (e *Engine) Apply(ctx context.Context, p *engine.Plan, events func(engine.Event)) error {
	r := &run{e: e, p: p, ids: map[string]string{}, sent: map[string]*spec.Container{}, removed: map[string]bool{}}
	if err := r.look(ctx); err != nil {
		return err
	}
	if removesAll(p) {
		// The supervisor ends everything at once, and with it the supervisor.
		if err := e.end(ctx, p.Project); err != nil {
			return err
		}
	}
	for _, c := range p.Observed.Containers {
		r.ids[c.Service] = c.ID
	}
	r.runner = &engine.Runner{Plan: p, Events: events, Told: r.told, Do: func(ctx context.Context, s engine.Step) error { return conflict(r.step(ctx, s)) }}
	err := r.runner.Run(ctx)
	return errors.Join(err, r.settle(ctx))
}

// removesAll reports whether a plan removes every container.
func removesAll(p *engine.Plan) bool {
	removed := 0
	for _, s := range p.Steps {
		if s.Op == engine.OpRemoveContainer {
			removed++
		}
	}
	return p.Compiled == nil && removed > 0 && removed == len(p.Observed.Containers)
}

// run is one Apply.
type run struct {
	e       *Engine
	p       *engine.Plan
	runner  *engine.Runner
	machine machine // where containers are made

	dial    sync.Mutex
	running *client.Client // the supervisor
	looked  bool           // running is set, or there is no supervisor
	usable  bool           // it exists and accepts our specs
	mu      sync.Mutex
	ids     map[string]string          // service → container
	sent    map[string]*spec.Container // service → its container, as this run sent it
	removed map[string]bool            // services of a dead supervisor

	known engine.Reports // what the containers report of themselves
}

// look checks everything to be created before anything is changed.
func (r *run) look(ctx context.Context) error {
	if r.p.Compiled == nil {
		return nil
	}
	var err error
	for _, s := range r.p.Steps {
		switch s.Op {
		case engine.OpBuildImage:
			return buildRefusal(s.Service)
		case engine.OpCreateContainer:
			if r.machine.image == nil {
				if r.machine, err = r.e.machine(ctx, r.p.Compiled); err != nil {
					return err
				}
			}
			m := r.machine
			m.image = pendingImage
			if _, err := translate(r.p.Desired, s.Service, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// found returns the project's supervisor; nil if there is none, or it doesn't
// respond. It searches once.
func (r *run) found(ctx context.Context) (*client.Client, error) {
	r.dial.Lock()
	defer r.dial.Unlock()
	var err error
	if !r.looked {
		if r.running, _, err = r.e.alive(ctx, r.p.Project); err == nil {
			r.looked = true
		}
	}
	return r.running, err
}

// supervisor returns the project's supervisor, and starts one if there is none.
func (r *run) supervisor(ctx context.Context) (*client.Client, error) {
	r.dial.Lock()
	defer r.dial.Unlock()
	if !r.usable {
		c, err := r.e.supervisor(ctx, r.p.Project)
		if err != nil {
			return nil, err
		}
		r.running, r.looked, r.usable = c, true, true
	}
	return r.running, nil
}

// settle ends a supervisor without containers, and removes state that isn't needed.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	list, err := r.e.list(ctx, r.p.Project)
	if err != nil {
		return err
	}
	for _, s := range list {
		if !r.removed[s.Container.Service] {
			return nil
		}
	}
	kept, err := readObjects(r.e.dir(r.p.Project))
	if err != nil {
		return err
	}
	return r.e.settle(ctx, r.p.Project, len(kept.Networks)+len(kept.Volumes) == 0)
}

// remove removes a container. If there is no supervisor and everything is removed,
// none is started for it: the state is removed with the project.
func (r *run) remove(ctx context.Context, s engine.Step) error {
	if r.p.Compiled == nil {
		c, err := r.found(ctx)
		if err != nil {
			return err
		}
		if c != nil {
			return ignoreGone(c.Remove(ctx, s.Service))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.removed[s.Service] = true
		return nil
	}
	// One of another build removes its own, too.
	c, err := r.found(ctx)
	if err == nil && c == nil {
		c, err = r.supervisor(ctx)
	}
	if err != nil {
		return err
	}
	return ignoreGone(c.Remove(ctx, s.Service))
}

// ignoreGone accepts that somebody else removed the container.
func ignoreGone(err error) error {
	if told, ok := errors.AsType[*api.Error](err); ok && told.Code == api.CodeUnknown {
		return nil
	}
	return err
}

func (r *run) create(ctx context.Context, s engine.Step) error {
	if r.p.Compiled.Machine(s.Service) != nil {
		if err := r.e.writeGuestInit(); err != nil {
			return fmt.Errorf("workshop-init can't be written to the cache: %w", err)
		}
	}
	c, err := translate(r.p.Desired, s.Service, r.machine)
	if err != nil {
		return err
	}
	id := newID()
	c.Labels[labelID] = id
	r.mu.Lock()
	r.ids[s.Service] = id
	if of := c.Network.Of; of != "" {
		c.Labels[labelNetworkOf] = r.ids[of]
	}
	r.mu.Unlock()
	for key := range r.p.Compiled.Project.Services[s.Service].Networks {
		c.Labels[labelNetworks] = engine.NetworkName(r.p.Compiled.Project, key)
	}
	sv, err := r.supervisor(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.sent[s.Service] = c
	r.mu.Unlock()
	err = sv.Create(ctx, c)
	if other, ok := errors.AsType[*client.StoredError](err); ok {
		return refuseStored(ctx, sv, c, other)
	}
	return err
}

// conflict marks a supervisor's error as an [engine.ConflictError] if the project
// has changed since it was observed: a service or the supervisor appeared or is gone.
func conflict(err error) error {
	told, ok := errors.AsType[*api.Error](err)
	if ok && slices.Contains([]api.Code{api.CodeExists, api.CodeUnknown, api.CodeNotRunning, api.CodeEnding}, told.Code) || errors.Is(err, client.ErrNone) {
		return &engine.ConflictError{Err: err}
	}
	return err
}

func (r *run) start(ctx context.Context, s engine.Step) error {
	c, err := r.supervisor(ctx)
	if err != nil {
		return err
	}
	err = c.Start(ctx, s.Service)
	told, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return err
	case told.Code == api.CodePortTaken:
		_, port, _ := net.SplitHostPort(told.Address)
		return engine.PortTaken(r.p.Compiled, told.Address, port, told)
	case told.Code == api.CodeRefused:
		return &engine.RefusedError{Reason: told.Message}
	}
	return err
}

// wait waits until the container of a step is ready.
func (r *run) wait(ctx context.Context, s engine.Step) error {
	if r.p.WaitTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.p.WaitTimeout, &engine.NotReadyError{
			Service: s.Service, Reason: fmt.Sprintf("not ready after %s (see `workshop logs %s`, or raise --wait-timeout)", r.p.WaitTimeout, s.Service)})
		defer cancel()
	}
	c, err := r.supervisor(ctx)
	if err != nil {
		return err
	}
	ready, err := c.Ready(ctx, s.Service)
	if err != nil {
		return err
	}
	for _, note := range ready.Notes {
		if r.p.Starts(s.Service) { // else it was shown before
			r.runner.Emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: note})
		}
	}
	err = verdict(s.Service, ready)
	if err == nil {
		err = r.compare(ctx, c, s, ready)
	}
	if err != nil && ready.Ended && !r.p.Starts(s.Service) { // it ran when it was observed
		return &engine.ConflictError{Err: err}
	}
	return err
}

// verdict returns why a container isn't ready; nil if it is.
func verdict(service string, r *api.Ready) error {
	switch {
	case r.Ready:
		return nil
	case r.Reason != "":
		return &engine.NotReadyError{Service: service, Reason: r.Reason}
	}
	reason := "it ended before it was ready"
	if r.Ended {
		reason += fmt.Sprintf(" (exit code %d)", r.ExitCode)
	}
	if r.OOM {
		reason += ", OOM-killed"
	}
	return &engine.NotReadyError{Service: service, Reason: reason, Stderr: r.Stderr}
}

// toldTime bounds a request for what a container has already printed.
const toldTime = 50 * time.Millisecond

// told returns the failure that a container printed, if another step failed first as
// a consequence.
func (r *run) told() error {
	if r.running == nil {
		return nil
	}
	for _, s := range r.p.Steps {
		if s.Op != engine.OpStartContainer {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), toldTime)
		ready, err := r.running.Ready(ctx, s.Service)
		cancel()
		if err == nil && ready.Reason != "" {
			return &engine.NotReadyError{Service: s.Service, Reason: s.Service + ": " + ready.Reason}
		}
	}
	return nil
}

// exists reports whether a path exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

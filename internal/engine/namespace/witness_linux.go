package namespace

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// Witness asks the supervisor for the main process, which stays the container's until
// the descriptor is closed.
func (e *Engine) Witness(ctx context.Context, project, service, dir string) (engine.Witness, error) {
	s, err := e.one(ctx, project, service, dir)
	if err != nil {
		return engine.Witness{}, err
	}
	stopped := &engine.NotRunningError{Project: project, Services: []string{service}, State: string(s.State)}
	if s.State != api.Running {
		return engine.Witness{}, stopped
	}
	c, err := e.find(ctx, project)
	if err != nil {
		return engine.Witness{}, err
	}
	if c == nil {
		return engine.Witness{}, stopped
	}
	pid, pidfd, err := c.Pid(ctx, service)
	if err != nil {
		if notRunning(err) {
			err = stopped
		}
		return engine.Witness{}, err
	}
	k := &s.Container
	w := engine.Witness{
		PID: pid, Hold: pidfd, Env: slices.Clone(k.Process.Env), Restart: string(cmp.Or(k.Restart, spec.RestartNo)),
		LogBounded: k.Log.MaxSize > 0 && k.Log.MaxFiles > 0, NoSetuid: true,
	}
	for _, p := range k.Ports {
		w.Published = append(w.Published, p.Address)
	}
	var env []string
	if env, w.Guest, err = inMachine(k); err != nil {
		pidfd.Close()
		return engine.Witness{}, err
	}
	if w.Guest != nil {
		w.Env = env
	}
	w.Binds = map[string]string{}
	for _, m := range k.Mounts {
		if m.Type == spec.Bind {
			w.Binds[w.Guest.Target(m.Target)] = m.Source
		}
	}
	text, err := json.Marshal(k)
	w.Text = string(text)
	return w, err
}

// Crash lets the program end by SIGABRT, which a Go program doesn't survive.
func (e *Engine) Crash(ctx context.Context, project, service, dir string) error {
	s, err := e.one(ctx, project, service, dir)
	if err != nil {
		return err
	}
	c, err := e.find(ctx, project)
	if err == nil && c == nil {
		err = &engine.NotRunningError{Project: project, Services: []string{service}, State: string(s.State)}
	}
	if err != nil {
		return err
	}
	return c.Signal(ctx, service, "SIGABRT")
}

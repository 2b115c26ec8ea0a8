package process

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
	"github.com/llmdo/workshop/internal/lib/rmtree"
	"github.com/llmdo/workshop/internal/lib/safetar"
)

// Check refuses workers whose user isn't available or that have MCP servers, and
// upstream proxies.
func (e *Engine) Check(_ context.Context, c *compose.Compiled) error {
	for _, name := range slices.Sorted(maps.Keys(c.Roles)) {
		if c.Roles[name] != compose.RoleWorker {
			continue
		}
		if _, err := userOf(name, c.Project.Services[name].User); err != nil {
			return err
		}
		if _, err := grantOf(c.Project.Services[name]); err != nil {
			return err
		}
	}
	if c.Policy != nil && c.Policy.Proxy != "" {
		return &engine.RefusedError{Reason: "network.proxy: process mode has no guard to use it", Do: "use --isolation namespace"}
	}
	if c.Policy != nil && c.Policy.HasEndpoints() {
		return &engine.RefusedError{Reason: "network.allow: an endpoint (at) is the guard's, and process mode has none", Do: "use --isolation namespace"}
	}
	return nil
}

// Apply records the result of the plan. Plans that create no worker, such as a
// restart, don't check users again.
func (e *Engine) Apply(ctx context.Context, p *engine.Plan, events func(engine.Event)) error {
	if slices.ContainsFunc(p.Steps, func(s engine.Step) bool { return s.Op == engine.OpCreateContainer }) {
		if err := e.Check(ctx, p.Compiled); err != nil {
			return err
		}
	}
	r := &engine.Runner{Plan: p, Events: events, Do: func(_ context.Context, s engine.Step) error { return e.step(p, s) }}
	return r.Run(ctx)
}

func (e *Engine) step(p *engine.Plan, s engine.Step) error {
	switch s.Op {
	case engine.OpLoadInit, engine.OpFillTools:
		f, err := e.program()
		if err == nil {
			f.Close()
		}
		return err
	case engine.OpPullImage, engine.OpBuildImage, engine.OpWaitReady:
		return nil // the machine's programs are used, and nothing is started
	case engine.OpCreateVolume:
		return e.createVolume(p, s)
	case engine.OpFillVolume:
		return e.fill(p, s)
	case engine.OpRemoveVolume:
		return e.removeVolume(p.Project, s.ObjectID)
	case engine.OpCreateContainer:
		return e.create(p, s)
	case engine.OpStartContainer, engine.OpStopContainer:
		return e.change(p.Project, func(st *state) error { return e.turn(p.Project, st, s) })
	case engine.OpRemoveContainer:
		return e.remove(p.Project, s)
	}
	return fmt.Errorf("step %d: process mode has no operation %d", s.ID, int(s.Op))
}

func newID() string { return strings.ToLower(rand.Text()) }

// turn records a start or a stop, which ends sessions.
func (e *Engine) turn(project string, st *state, s engine.Step) error {
	c := st.byID(s.ObjectID)
	if s.ObjectID == "" {
		c = st.byService(s.Service)
	}
	if c == nil {
		return fmt.Errorf("%s no longer exists: run `workshop up`", s.Target)
	}
	c.State, c.Started = "exited", time.Time{}
	if s.Op == engine.OpStartContainer {
		c.State, c.Started = running, time.Now()
	}
	return e.setUp(project, c.ID, c.State == running)
}

func (e *Engine) volumeDir(project, name string) (string, error) {
	dir, err := e.data(project)
	if err == nil && !validName(name) {
		err = fmt.Errorf("%q is not valid as a volume name", name)
	}
	return filepath.Join(dir, volumesName, name), err
}

func (e *Engine) createVolume(p *engine.Plan, s engine.Step) error {
	name := engine.VolumeName(p.Compiled.Project, s.Key)
	dir, err := e.volumeDir(p.Project, name)
	if err != nil {
		return err
	}
	if err := rmtree.Remove(dir); err != nil { // left by a run that was killed
		return err
	}
	gid, err := groupOf(p.Compiled, s.Key)
	if err == nil {
		err = e.reachedBy(dir, gid)
	}
	if err != nil {
		return err
	}
	return e.change(p.Project, func(st *state) error {
		st.Volumes = engine.WithObject(st.Volumes, engine.Object{Name: name, Labels: engine.VolumeLabels(p.Compiled, s.Key)})
		return nil
	})
}

// fill makes a read-only copy (B9).
func (e *Engine) fill(p *engine.Plan, s engine.Step) error {
	dir, err := e.volumeDir(p.Project, engine.VolumeName(p.Compiled.Project, s.Key))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := copytree.Volume(t, p.Compiled, s.Key)
		if err == nil {
			err = t.Close()
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	_, err = safetar.Extract(root, "", r, safetar.Limits{}) // the project's own files
	return err
}

func (e *Engine) removeVolume(project, name string) error {
	dir, err := e.volumeDir(project, name)
	if err != nil {
		return err
	}
	if err := rmtree.Remove(dir); err != nil {
		return err
	}
	return e.change(project, func(st *state) error {
		st.Volumes = engine.WithoutObject(st.Volumes, name)
		return nil
	})
}

// create records a worker with the description for its sessions.
func (e *Engine) create(p *engine.Plan, s engine.Step) error {
	c := p.Compiled
	one := engine.Container{
		ID: newID(), Name: engine.ContainerName(c.Project, s.Service), Service: s.Service, Role: compose.RoleWorker.String(), State: "created",
		Image: "this machine", ImageID: imageID(engine.ImageRef(p.Desired, s.Service)), ConfigHash: engine.ConfigHash(p.Desired, s.Service),
	}
	if c.Facts != nil {
		one.Directory = c.Facts.ProjectDir
	}
	if err := e.describe(c, s.Service, one.ID); err != nil {
		return fmt.Errorf("worker %s: %w", s.Service, err)
	}
	return e.change(p.Project, func(st *state) error {
		if old := st.byService(s.Service); old != nil {
			st.without(old.ID)
		}
		st.Containers = append(st.Containers, one)
		return nil
	})
}

// remove removes a service and a worker's own directories.
func (e *Engine) remove(project string, s engine.Step) error {
	return e.change(project, func(st *state) error {
		c := st.byID(s.ObjectID)
		if c == nil {
			return nil
		}
		if err := errors.Join(e.setUp(project, c.ID, false), e.forget(project, c.ID)); err != nil {
			return err
		}
		st.without(s.ObjectID)
		return nil
	})
}

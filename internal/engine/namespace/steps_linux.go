package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// step carries out one step.
func (r *run) step(ctx context.Context, s engine.Step) error {
	switch s.Op {
	case engine.OpPullImage:
		return r.e.pull(ctx, r.p, s, r.runner.Emit)
	case engine.OpWaitReady:
		return r.wait(ctx, s)
	case engine.OpCheckPort:
		return engine.CheckPort(ctx, r.e, r.p.Compiled, s.Key)
	}
	ctx, cancel := engine.Finish(ctx)
	defer cancel()
	switch s.Op {
	case engine.OpLoadInit, engine.OpFillTools:
		_, err := r.e.program()
		return err
	case engine.OpCreateNetwork:
		return r.createNetwork(s)
	case engine.OpCreateVolume:
		return r.createVolume(s)
	case engine.OpFillVolume:
		if _, ok := r.p.Compiled.Caches[s.Key]; ok {
			return r.e.giveCache(r.p.Compiled, s.Key)
		}
		return r.e.fill(r.p.Compiled, s.Key)
	case engine.OpReloadPolicy:
		return r.runner.ReloadPolicy(ctx, s, engine.Reload{
			Dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return r.e.control(ctx, r.p.Project) },
			Fill: func(context.Context) error { return r.e.fill(r.p.Compiled, compose.PolicyVolume) },
		})
	case engine.OpCreateContainer:
		return r.create(ctx, s)
	case engine.OpStartContainer:
		return r.start(ctx, s)
	case engine.OpStopContainer:
		c, err := r.found(ctx)
		if err != nil || c == nil {
			return err
		}
		return ignoreGone(c.Stop(ctx, s.Service))
	case engine.OpRemoveContainer:
		return r.remove(ctx, s)
	case engine.OpRemoveNetwork:
		return r.e.forgetNetwork(r.p.Project, s.ObjectID)
	case engine.OpRemoveVolume:
		return r.e.removeVolume(r.p.Project, s.ObjectID)
	}
	return fmt.Errorf("step %d: the namespace engine has no operation %d", s.ID, int(s.Op))
}

func (r *run) createNetwork(s engine.Step) error {
	c := r.p.Compiled
	if err := checkNetwork(c.Project, s.Key); err != nil {
		return err
	}
	if err := r.e.makeDir(r.p.Project); err != nil {
		return err
	}
	o := engine.Object{ID: newID(), Name: engine.NetworkName(c.Project, s.Key), Labels: engine.NetworkLabels(c, s.Key)}
	return r.e.changeObjects(r.p.Project, func(all *objects) { all.Networks = engine.WithObject(all.Networks, o) })
}

func (e *Engine) forgetNetwork(project, id string) error {
	if !exists(e.dir(project)) {
		return nil
	}
	return e.changeObjects(project, func(all *objects) {
		for _, n := range all.Networks {
			if n.ID == id {
				all.Networks = engine.WithoutObject(all.Networks, n.Name)
				break
			}
		}
	})
}

// createVolume makes the directory before it lists the volume, so that every listed
// volume exists.
func (r *run) createVolume(s engine.Step) error {
	c := r.p.Compiled
	if err := checkKnown("volume "+s.Key, c.Project.Volumes[s.Key]); err != nil {
		return err
	}
	name := engine.VolumeName(c.Project, s.Key)
	if _, ok := c.Caches[s.Key]; ok {
		return r.e.createCache(r.p.Project, engine.Object{Name: name, Labels: engine.VolumeLabels(c, s.Key)})
	}
	dir, err := r.e.volumeDir(r.p.Project, name)
	if err != nil {
		return err
	}
	if err := r.e.makeDir(r.p.Project); err != nil {
		return err
	}
	// An existing directory that isn't listed was left by a killed run.
	if err := rmtree.Remove(dir); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil { // regardless of the umask
		return err
	}
	if c.Roles[s.Key] == compose.RoleOutlet {
		if err := r.e.giveOutlet(c, s.Key, dir); err != nil {
			return err
		}
	}
	o := engine.Object{Name: name, Labels: engine.VolumeLabels(c, s.Key)}
	return r.e.changeObjects(r.p.Project, func(all *objects) { all.Volumes = engine.WithObject(all.Volumes, o) })
}

// giveOutlet gives the volume of an outlet to its user. Without root that is the caller.
func (e *Engine) giveOutlet(c *compose.Compiled, outlet, dir string) error {
	uid, gid, ok := numeric(c.Project.Services[outlet].User)
	if !ok {
		return fmt.Errorf("the user %q of %s is not uid:gid in numbers", c.Project.Services[outlet].User, outlet)
	}
	if e.rootless {
		return nil
	}
	return os.Lchown(dir, int(uid), int(gid))
}

func (e *Engine) removeVolume(project, name string) error {
	if e.isCache(project, name) {
		return e.removeCache(project, name)
	}
	dir, err := e.volumeDir(project, name)
	if err != nil {
		return err
	}
	if !exists(e.dir(project)) {
		return nil
	}
	if err := e.changeObjects(project, func(all *objects) { all.Volumes = engine.WithoutObject(all.Volumes, name) }); err != nil {
		return err
	}
	if err := rmtree.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

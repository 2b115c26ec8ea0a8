package app

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/workshop"
)

// projectCopy is a project that is brought up to be killed and filled: workers with the
// image, user and network of those of a project, small limits, and nothing else of it, so
// that nothing can happen to that.
type projectCopy struct {
	env     *Env
	p       *Project
	running *Running
	dir     string
	workers []string
	up      bool
}

// machineTime is how long the virtual machines of a copy may take to boot, all at once.
const machineTime = 2 * time.Minute

// newCopy makes a copy of the workers that are verified, in a directory of its own. The
// caller removes it, also after an error.
func (v *verification) newCopy(ctx context.Context) (*projectCopy, error) {
	dir, err := v.copyDir()
	if err != nil {
		return nil, Fail(CodeFailed, "a directory for a copy of the project: %w", err)
	}
	dir = RealPath(dir)
	env := *v.env
	c := &projectCopy{env: &env, dir: dir}
	source := *v.view.c.Source
	source.Workshop = bareWorkshop(v.view.c.Workshop, v.images())
	for _, w := range v.workers {
		c.workers = append(c.workers, w.Name)
		if w.VM {
			source.Worker(w.Name).Container.Resources.Memory.V = verify.CopyMachineMemory
			env.Emulate = env.Emulate || slices.Contains(w.NotHeld, "B13")
			env.Settings.WaitTimeout = max(env.Settings.WaitTimeout, machineTime)
		}
	}
	env.Dir, env.Events, env.Warnings, env.Quiet = dir, nil, WarnNone, true
	env.Settings.File = filepath.Join(dir, "workshop.yaml")
	env.Settings.Project = ProjectSafe("verify-"+v.id[:7]+"-"+v.view.c.Name, "verify")
	env.Settings.EnvFiles = nil
	if err := c.write(v.view.c.Source); err != nil {
		return c, Fail(CodeFailed, "a copy of the project: %w", err)
	}
	source.Path, source.named, source.lockChecked = env.Settings.File, nil, true
	if c.p, err = env.compileSource(&source); err != nil {
		return c, err
	}
	env.Settings.Engine = v.running.Chosen.Name
	if c.running, err = env.connectBeside(ctx, c.p.ProjectRef, v.running); err != nil {
		return c, err
	}
	return c, c.start(ctx)
}

// copyDir makes a directory for a copy.
func (v *verification) copyDir() (string, error) {
	above := v.env.CacheDir()
	if above == "" {
		return os.MkdirTemp("", "workshop-verify-")
	}
	if err := os.MkdirAll(above, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(above, "verify-")
}

// write writes the files of which the workshop was read, as a record of them has to be
// of files of its own directory. On behalf of another user they belong to that one.
func (c *projectCopy) write(s *Source) error {
	for name, k := range s.read {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		path := filepath.Join(c.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, k.text, 0o644); err != nil {
			return err
		}
	}
	if uid, known := facts.OwnerOf(s.Path); known && os.Getuid() == 0 {
		return filepath.WalkDir(c.dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, uid, -1)
		})
	}
	return nil
}

// start brings the copy up.
func (c *projectCopy) start(ctx context.Context) error {
	ready, err := c.env.Prepare(ctx, c.running, c.p)
	if err != nil {
		return err
	}
	ch, err := c.env.Change(ctx, c.p.Name)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	c.up = true
	return ch.Up(ctx, c.running, c.p, ready, c.workers, UpOptions{WithoutCredentials: true})
}

// remove takes the copy down, and removes its directory.
func (c *projectCopy) remove(ctx context.Context) error {
	var err error
	if c.running != nil {
		if c.up {
			_, err = c.env.downOf(context.WithoutCancel(ctx), c.p.ProjectRef, DownOptions{AcceptWatched: true, Caches: true})
		}
		c.running.Close()
	}
	if err != nil {
		return err // it is taken down by its file
	}
	return os.RemoveAll(c.dir)
}

// images are those that run, by worker.
func (v *verification) images() map[string]string {
	out := map[string]string{}
	for _, c := range v.seen.Containers {
		out[c.Service] = c.Image
	}
	return out
}

// bareWorkshop is a workshop with small limits, whose workers have no mount, secret, cache
// or port.
func bareWorkshop(w *workshop.Workshop, images map[string]string) *workshop.Workshop {
	bare := *w
	bareContainer(&bare.Container)
	bare.Workers = slices.Clone(w.Workers)
	bare.MCP = nil
	for i := range bare.Workers {
		k := &bare.Workers[i].Container
		if k.Build != nil && images[bare.Workers[i].Name] != "" { // it was built for what runs
			k.Build, k.Image.V = nil, images[bare.Workers[i].Name]
		}
		bareContainer(k)
	}
	return &bare
}

func bareContainer(k *workshop.Container) {
	k.Mounts, k.Secrets, k.Caches, k.Ports, k.Env = nil, nil, nil, nil, maps.Clone(k.Env)
	k.GitAuthor.V = ""
	k.Pull.V = workshop.PullNever
	k.Workdir.V = "/"
	k.Resources.Memory.V, k.Resources.PIDs.V, k.Scratch.V = verify.CopyMemory, verify.CopyPIDs, verify.CopyScratch
	k.Tmp.V, k.Home.V, k.Shm.V = 8<<20, 8<<20, 8<<20
}

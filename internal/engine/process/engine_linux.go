package process

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/lib/landlock"
)

// Engine is process mode on this machine. It is safe for use by several
// goroutines.
type Engine struct {
	opts Options
	init *initimage.Set

	mu sync.Mutex // state files
}

var _ engine.Engine = (*Engine)(nil)

// New returns the engine; it starts nothing.
func New(_ context.Context, o Options) (engine.Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.DataDir == "" {
		if o.DataDir = o.StateDir; os.Geteuid() == 0 {
			o.DataDir = RootData
		}
	}
	e := &Engine{opts: o, init: o.Init}
	if e.init == nil {
		e.init = initimage.Default()
	}
	return e, nil
}

// Close does nothing.
func (e *Engine) Close() error { return nil }

// dockerSocket is open to the engine's group; Landlock doesn't restrict it.
const dockerSocket = "/var/run/docker.sock"

// Info returns findings on what replaces the waived promises, which are listed in
// package promise. No finding has a promise.
func (e *Engine) Info(context.Context) (engine.Info, error) {
	_, noIPv6 := os.Stat("/proc/net/if_inet6")
	i := engine.Info{
		Kind: kind, Endpoint: "this machine", Version: e.opts.Version, OS: "linux", Arch: runtime.GOARCH, Local: true,
		DataRoot: e.opts.StateDir, IPv6: noIPv6 == nil,
	}
	fence := engine.Finding{Name: "landlock", Held: true, Meaning: "programs of a worker read its mounts and the machine's programs, and write its rw mounts"}
	if landlock.ABI() == 0 {
		fence.Held = false
		fence.Meaning = "this kernel has no Landlock: only the file tools are restricted to the mounts, and a shell reaches every file that you reach"
		fence.Do = "use --isolation namespace, or remove the tool shell from the workers"
	}
	i.Findings = append(i.Findings, fence)
	if c, err := net.Dial("unix", dockerSocket); err == nil {
		c.Close()
		i.Findings = append(i.Findings, engine.Finding{
			Name: "engine-socket", Meaning: "a worker's programs can open " + dockerSocket + ", and so become root on this machine",
			Do: "remove the tool shell from the workers, or use --isolation docker",
		})
	}
	return i, nil
}

// Capabilities returns none: nothing contains a worker.
func (e *Engine) Capabilities() engine.Capabilities { return engine.Capabilities{} }

// Ping returns nil: the engine is this program.
func (e *Engine) Ping(context.Context) error { return nil }

// CanLearn returns nil: there are no rooms.
func (e *Engine) CanLearn() error { return nil }

// Caches returns none: tools use those of their user.
func (e *Engine) Caches(context.Context, bool) ([]engine.Cache, error) { return nil, nil }

// RemoveCache does nothing.
func (e *Engine) RemoveCache(context.Context, engine.Cache) error { return nil }

// Begin does nothing.
func (e *Engine) Begin(string) {}

// Tidy does nothing: there is nothing but the state of the workers.
func (e *Engine) Tidy(context.Context, string, string) error { return nil }

// InitNames returns the names for Facts; this engine has no such objects.
func (e *Engine) InitNames(context.Context) (image, volume string, err error) {
	n, err := e.init.Names(runtime.GOARCH)
	if err != nil {
		return "", "", err
	}
	return n.ImageID, n.Volume(), nil
}

// Observe reads the recorded state. All images count as existing, as none is used.
func (e *Engine) Observe(_ context.Context, project string, images ...string) (engine.Observed, error) {
	s, err := e.read(project)
	if err != nil {
		return engine.Observed{}, err
	}
	o := engine.Observed{Project: project, WorkersOnly: true, Containers: s.Containers, Volumes: s.Volumes, Images: map[string]string{}}
	for _, ref := range images {
		o.Images[ref] = imageID(ref)
	}
	return o, nil
}

// imageID returns the ID of an image that isn't used.
func imageID(ref string) string { return "none:" + ref }

// Logs writes nothing: the output of a worker's programs goes to their session.
func (e *Engine) Logs(ctx context.Context, project string, services []string, o engine.LogsOptions) error {
	seen, err := e.Observe(ctx, project)
	if err != nil {
		return err
	}
	return engine.WriteLogs(ctx, seen, services, o, func(ctx context.Context, _ engine.Container, _, _ io.Writer) error {
		if o.Follow {
			<-ctx.Done()
		}
		return nil
	})
}

// Control refuses: there is no guard.
func (e *Engine) Control(context.Context, string, string) (io.ReadWriteCloser, error) {
	return nil, &engine.RefusedError{Promise: "B20", Reason: "process mode has no guard: workers have the machine's network", Do: "use --isolation namespace"}
}

// worker returns a running worker, which must be of dir unless that is empty.
func (e *Engine) worker(project, service, dir string) (engine.Container, error) {
	s, err := e.read(project)
	if err != nil {
		return engine.Container{}, err
	}
	at := slices.IndexFunc(s.Containers, func(c engine.Container) bool { return c.Service == service })
	if at < 0 {
		return engine.Container{}, &engine.NotRunningError{Project: project, Services: []string{service}}
	}
	c := s.Containers[at]
	switch {
	case dir != "" && c.Directory != "" && c.Directory != dir:
		return c, engine.NewForeignError(project, dir, c.Directory)
	case c.State != running:
		return c, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	}
	return c, nil
}

// validName reports whether a name is safe as a file name.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\x00")
}

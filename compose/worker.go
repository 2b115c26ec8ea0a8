package compose

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// Names inside every worker.
const (
	workerAccount  = "worker"   // in passwd and $USER
	WorkerHostname = "workshop" // the room's, which its workers inherit
)

// worker compiles one worker.
func (c *compiler) worker(w *workshop.Worker) {
	k := &w.Container
	s := hardened(w.Name, workerGrace)
	c.origin(s.Name, "", w.Source)
	s.Labels = c.labels(RoleWorker)
	s.Logging = logging(workerLogSize)
	s.Runtime = k.Runtime.V
	c.origin(s.Name, "runtime", k.Runtime.Source)

	c.image(&s, k)
	c.user(&s, k)
	c.limits(&s, k)
	c.tmpfs(&s, k)
	c.workerNetwork(&s, k)
	c.env(&s, k, c.out.RoomOf[s.Name] != "")
	s.Volumes = append(s.Volumes, toolsMount())
	c.carried(&s, k)
	c.mounts(&s, k)
	c.caches(&s, k)
	c.gate(&s, w)
	c.add(s, RoleWorker)
}

// workdirFlag is the gate's argument that holds the working directory, which it
// enters itself, without magic links: a path through a mount is hostile.
const workdirFlag = "--workdir"

// workdir leaves to the engine only what can't be done inside: to make a missing
// directory in the read-only root. Through a mount it takes no path.
func (c *compiler) workdir(s *types.ServiceConfig, k *workshop.Container) []string {
	dir, src := cmp.Or(k.Workdir.V, homeDir), k.Workdir.Source
	c.origin(s.Name, "entrypoint."+workdirFlag, src)
	if s.WorkingDir = "/"; !mounted(s, dir) {
		s.WorkingDir = dir
		c.origin(s.Name, "working_dir", src)
	}
	return []string{workdirFlag, dir}
}

// mounted reports whether something is mounted at dir or above it.
func mounted(s *types.ServiceConfig, dir string) bool {
	targets := []string{"/proc", "/sys", "/dev"}
	for _, v := range s.Volumes {
		targets = append(targets, v.Target)
	}
	for _, t := range s.Tmpfs {
		target, _, _ := strings.Cut(t, ":")
		targets = append(targets, target)
	}
	return slices.ContainsFunc(targets, func(t string) bool { return subpath.Within(path.Clean(dir), path.Clean(t)) })
}

// gate makes the gate the worker's main process (B12): the image's ENTRYPOINT
// and CMD are not run. It tests that every rw mount can be written, and knows
// what the worker's tools may do.
func (c *compiler) gate(s *types.ServiceConfig, w *workshop.Worker) {
	k := &w.Container
	s.Entrypoint = types.ShellCommand{InitPath, "gate"}
	if c.out.RoomOf[s.Name] != "" {
		s.Entrypoint = append(s.Entrypoint, "--room")
		if k.Kernel.V.Own() {
			s.Entrypoint = append(s.Entrypoint, "--relay", OutletSocket)
		}
	}
	for i := range k.Mounts {
		if k.Mounts[i].ReadWrite {
			s.Entrypoint = append(s.Entrypoint, "--write", k.Mounts[i].Target.V)
			c.origin(s.Name, "entrypoint."+k.Mounts[i].Target.V, k.Mounts[i].Target.Source)
		}
	}
	s.Entrypoint = append(s.Entrypoint, cacheArgs(k)...)
	s.Entrypoint = append(s.Entrypoint, c.workdir(s, k)...)
	s.Entrypoint = append(s.Entrypoint, c.tools(s.Name, w)...)
	s.HealthCheck = healthcheck(InitPath, "health", "gate")
}

// user sets a user that the file gives; without one the machine decides. A
// uid alone would leave the group to the image, and to root where the image
// does not know the user: then the group is the uid.
func (c *compiler) user(s *types.ServiceConfig, k *workshop.Container) {
	if k.User.V == "" {
		return
	}
	s.User = k.User.V
	src := k.User.Source
	if uid, _, both := cutUser(s.User); !both {
		s.User = uid + ":" + uid
		if src.Template != "" {
			src.Template += ":" + src.Template
		}
	}
	c.origin(s.Name, "user", src)
}

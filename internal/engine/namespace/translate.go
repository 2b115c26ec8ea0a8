package namespace

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/promise"
)

// kind is the engine's name.
const kind = promise.Namespace

// machine has the properties of this machine and the caller that a translation needs.
type machine struct {
	rootless  bool
	uid, gid  int    // the caller's
	volumes   string // directory of the project's volumes
	caches    string // directory of the project's caches
	tools     string // directory of workshop-init
	resolv    string // directory of the guard's resolv.conf
	filter    []byte // the compiled seccomp profile
	unlimited bool   // --without-limits, and none can be enforced
	// files is the highest hard limit of open files that the caller can set; 0:
	// any.
	files uint64
	// firstPort is the lowest port that the caller may listen on.
	firstPort int
	// image returns an image; it isn't called for workshop-init's.
	image func(ref string) (workerImage, error)
	// disk returns the file with the root file system of an image that is there, for
	// virtual machines.
	disk func(ref string) (string, error)
	// guestInit is the first program of their guests, a file.
	guestInit string
	// kvm refuses a worker whose user can't open that device; nil: it isn't looked at.
	kvm func(service string, uid, gid uint32) error
	// real resolves the symbolic links of a path.
	real func(string) (string, error)
}

// workerImage is the part of an image that a container uses.
type workerImage struct {
	id  string // digest of its configuration
	dir string // extracted; empty: an empty root
	// pending: the image isn't pulled yet, so its user and directory can't be
	// checked.
	pending    bool
	env        []string
	user       string
	workingDir string
	volumes    []string // declared by it
}

// translate translates a service to a container. It is pure except for the machine's
// functions. Anything it can't translate is an error, by name.
func translate(d engine.Desired, service string, m machine) (*spec.Container, error) {
	s, ok := d.Compiled.Project.Services[service]
	if !ok {
		return nil, fmt.Errorf("no service %q in the project", service)
	}
	if err := checkKnown("service "+service, s); err != nil {
		return nil, err
	}
	t := translation{d: d, c: d.Compiled, m: m, name: service, s: s, role: roles[d.Compiled.Roles[service]]}
	if t.role == "" {
		return nil, fmt.Errorf("service %s is not a worker, room, outlet or guard", service)
	}
	out, err := t.container()
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", service, err)
	}
	return out, nil
}

var roles = map[compose.Role]spec.Role{
	compose.RoleWorker: spec.Worker, compose.RoleRoom: spec.Room, compose.RoleGuard: spec.Guard, compose.RoleOutlet: spec.Outlet,
}

// translation is one call of translate.
type translation struct {
	d    engine.Desired
	c    *compose.Compiled
	m    machine
	name string
	s    types.ServiceConfig
	role spec.Role

	ours  bool // its image is workshop-init's
	image workerImage
	out   *spec.Container
}

func (t *translation) container() (*spec.Container, error) {
	t.out = &spec.Container{
		Version: spec.Version, Name: engine.ContainerName(t.c.Project, t.name), Service: t.name, Role: t.role,
		Labels: engine.ContainerLabels(t.d, t.name), Image: engine.ImageRef(t.d, t.name),
		Seccomp: t.m.filter, Landlock: true, OOMScore: int(t.s.OomScoreAdj),
	}
	for _, part := range []func() error{
		t.root, t.user, t.process, t.mounts, t.tmpfs, t.coverVolumes, t.sortMounts,
		t.network, t.ports, t.security, t.capabilities, t.limits, t.rlimits, t.life, t.log, t.machine,
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return t.out, nil
}

// root sets the root file system: the image's, or an empty one with workshop-init at
// the path that it has in its own image.
func (t *translation) root() error {
	if t.s.Build != nil {
		return buildRefusal(t.name)
	}
	if !t.s.ReadOnly {
		return fmt.Errorf("its root must be read-only (B3)")
	}
	if f := t.c.Facts; f != nil && f.InitImage != "" && t.s.Image == f.InitImage {
		t.ours, t.image = true, workerImage{id: f.InitImage}
	} else {
		if t.role != spec.Worker {
			return fmt.Errorf("the image of a %s must be workshop-init's, got %q", t.role, t.s.Image)
		}
		var err error
		if t.image, err = t.m.image(t.out.Image); err != nil {
			return err
		}
	}
	t.out.Root.Dir, t.out.ImageID = t.image.dir, t.image.id
	return engine.CheckPath("the root", t.image.dir)
}

// buildRefusal returns the error for `build:`: this engine can't run a Dockerfile.
func buildRefusal(service string) error {
	return &engine.RefusedError{
		Reason: fmt.Sprintf("%s has `build:`, which needs the docker engine", service),
		Do:     "build the image elsewhere and name it with `image:` (a reference, oci:DIR or docker-archive:FILE), or use --engine docker",
	}
}

// process sets the executed program. The project always has the full command of
// workers, rooms and the guard: an image's ENTRYPOINT and CMD are not run (B12).
func (t *translation) process() error {
	p := &t.out.Process
	p.Args = slices.Concat(t.s.Entrypoint, t.s.Command)
	if len(p.Args) == 0 || !path.IsAbs(p.Args[0]) {
		return fmt.Errorf("its main process %q is not an absolute path: an image's own is not run (B12)", p.Args)
	}
	if t.role == spec.Room && t.m.rootless {
		// The room admits a peer with the guard's uid.
		p.Args = append(p.Args, "--guard-uid", strconv.Itoa(t.m.uid))
	}
	if t.role == spec.Guard {
		p.Args = append(p.Args, "--resolv-conf", path.Join(guardResolv, api.ResolvName))
	}
	own, err := engine.Environment(t.s.Environment)
	if err != nil {
		return err
	}
	t.out.Hostname = t.holder().Hostname
	if t.out.Hostname == "" {
		t.out.Hostname = compose.WorkerHostname
	}
	p.Env = mergeEnv(own, t.image.env, t.out.Hostname)
	p.Cwd = path.Clean(cmp.Or(t.s.WorkingDir, t.image.workingDir, "/"))
	if !path.IsAbs(p.Cwd) {
		return fmt.Errorf("its working directory %q is not absolute", p.Cwd)
	}
	return nil
}

// defaultPath is Docker's default PATH (moby/oci: DefaultPathEnv).
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mergeEnv returns the variables of a container, sorted, with Docker's precedence:
// the service's, then the image's, then a PATH and the host name.
func mergeEnv(own, image []string, hostname string) []string {
	all := map[string]string{}
	for _, list := range [][]string{{"PATH=" + defaultPath, "HOSTNAME=" + hostname}, image, own} {
		for _, e := range list {
			if name, value, ok := strings.Cut(e, "="); ok && name != "" {
				all[name] = value
			}
		}
	}
	out := make([]string, 0, len(all))
	for _, name := range sortedKeys(all) {
		out = append(out, name+"="+all[name])
	}
	return out
}

// dockerGrace is Docker's time between the stop signal and SIGKILL.
const dockerGrace = 10 * time.Second

// life sets how the container is stopped and restarted.
func (t *translation) life() error {
	t.out.Grace = dockerGrace
	if g := t.s.StopGracePeriod; g != nil {
		t.out.Grace = time.Duration(*g)
	}
	switch t.s.Restart {
	case "", types.RestartPolicyNo:
		t.out.Restart = spec.RestartNo
	case types.RestartPolicyUnlessStopped:
		t.out.Restart = spec.RestartUnlessStopped
	default:
		return fmt.Errorf("the namespace engine does not support the restart policy %q", t.s.Restart)
	}
	if t.s.Init != nil && *t.s.Init {
		return fmt.Errorf("the namespace engine does not support init: true, as its main process reaps (B12)")
	}
	switch t.s.Runtime {
	case "", "runc", "crun":
		return nil
	}
	return &engine.RefusedError{
		Reason: fmt.Sprintf("runtime %q: the namespace engine runs workers itself, as runc and crun would", t.s.Runtime),
		Do:     "remove `runtime:`, or use --engine docker",
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

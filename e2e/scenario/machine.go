//go:build linux

package scenario

import (
	"context"
	"flag"
	"io"
	"testing"

	"github.com/llmdo/workshop/internal/probe"
)

// Engine is what carries the workshops of a run of tests out.
type Engine string

// The engines, as `-engine` names them. Rootless is the namespace engine as an
// ordinary user ([UID]); the tests themselves are root everywhere.
const (
	Docker    Engine = "docker"
	Namespace Engine = "namespace"
	Rootless  Engine = "rootless"
	// Podman is podman as root, by the Docker API: a service of the run's own.
	Podman Engine = "podman"
)

var engineFlag = flag.String("engine", string(Docker), "the engine of the scenarios: docker, namespace, rootless or podman")

// TheEngine is the one of this run.
func TheEngine() Engine { return Engine(*engineFlag) }

// DockerAPI reports whether the engine of this run is reached by Docker's API.
func DockerAPI() bool { return TheEngine() == Docker || TheEngine() == Podman }

// OnlyDocker skips a test that is about Docker itself on other engines. Why is
// a sentence of the list in e2e/README.md.
func OnlyDocker(t testing.TB, why string) {
	t.Helper()
	if TheEngine() != Docker {
		t.Skip("on docker alone: " + why)
	}
}

// OnlyPodman is [OnlyDocker] for a test that is about podman.
func OnlyPodman(t testing.TB, why string) {
	t.Helper()
	if TheEngine() != Podman {
		t.Skip("on podman alone: " + why)
	}
}

// OnlyNamespace is [OnlyDocker] for a test that is about the namespace engine.
func OnlyNamespace(t testing.TB, why string) {
	t.Helper()
	if DockerAPI() {
		t.Skip("on the namespace engine alone: " + why)
	}
}

// NotRootless is [OnlyDocker] for a test that an ordinary user's run can't show.
func NotRootless(t testing.TB, why string) {
	t.Helper()
	if TheEngine() == Rootless {
		t.Skip("not rootless: " + why)
	}
}

// Once is [OnlyDocker] for a test of what neither engine nor user has a part in: it runs
// on the namespace engine as root, which costs least.
func Once(t testing.TB, why string) {
	t.Helper()
	if TheEngine() != Namespace {
		t.Skip("on the namespace engine as root: " + why)
	}
}

// OnlyRootless is [OnlyDocker] for a test of what an ordinary user does.
func OnlyRootless(t testing.TB, why string) {
	t.Helper()
	if TheEngine() != Rootless {
		t.Skip("rootless only: " + why)
	}
}

// Container is a service of a project as the engine has it.
type Container struct {
	ID      string // another one when the container was made anew
	Service string
	State   string // created, running, restarting, exited: Docker's words
	Pid     int    // of the main process on this machine; 0: it doesn't run
	Started string // when; for comparing
	Mounts  []Mount
	Log     Log
}

// Mount is one mount of a container.
type Mount struct{ Source, Target, Type string }

// Log is where a container's output is kept on this machine, and its bounds.
type Log struct {
	Path     string // of the newest file; the others begin so
	MaxSize  int64  // bytes of one file
	MaxFiles int
}

// View is all that an engine knows of a container, as text.
type View struct {
	Env  []string // KEY=VALUE
	Rest string
}

// machine is an engine as the tests need it: what exists of a project, and
// what a person with all rights may do to it past our programs.
type machine interface {
	// uses tells where a scenario's programs keep their state.
	uses(s *Scenario)
	list(project string) ([]Container, error)
	view(project string, c Container) (View, error)
	logs(project string, c Container) (string, error)

	start(project string, c Container) error
	stop(project string, c Container) error // SIGTERM; SIGKILL after a second
	remove(project string, c Container) error
	// kill ends or signals the container by the engine's own means.
	kill(project string, c Container, signal string) error
	freeze(project string, c Container) error
	thaw(project string, c Container) error

	// exec runs a command in a worker as its user.
	exec(ctx context.Context, s *Scenario, c Container, argv []string, stdout io.Writer) (code int, err error)
	// early runs probes in a worker before it takes commands.
	early(s *Scenario, c Container, probes []string) ([]probe.Result, error)
	// session connects to a worker's toolbox, past all that a host checks.
	session(s *Scenario, worker string) (io.ReadWriteCloser, error)

	// leftovers names what exists of a project: containers and all else.
	leftovers(s *Scenario) []string
	// clean removes it, without our programs.
	clean(s *Scenario)

	// control runs probes in an ordinary place with an ordinary network, by
	// workshop-init or another program of this machine.
	control(s *Scenario, program string, probes []string) ([]probe.Result, error)
	// intrude runs probes in a service's network namespace as uid 0; see [Intruder].
	intrude(s *Scenario, i *Intruder, probes []string) ([]probe.Result, error)

	// hostAddress is an address of this machine that the guard could reach.
	hostAddress(s *Scenario) string
	// addresses are those that the guard has, as others see it, and its
	// neighbour's: an ordinary container, or "".
	addresses(s *Scenario) (guard, peer string)

	// hasImage and importImage: what a registry would have given. The image is
	// one layer, without an entry point.
	hasImage(ref string) bool
	importImage(s *Scenario, ref string, tar []byte) error

	close()
}

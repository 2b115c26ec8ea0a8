//go:build linux

package scenario

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/e2e/ownengine"
)

// alone is set in the test program that runs in namespaces of its own.
const alone = "WORKSHOP_E2E_ALONE"

// Alone runs the calling test once more as a process in network and mount
// namespaces of its own, and reports whether this is that process; the other one
// has the result already. A second engine needs it: it would change the netfilter
// rules of the first.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(alone) != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("loopback: %v %s", err, out)
		}
		return true
	}
	l := TheLab(t)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+t.Name()+"$", "-test.timeout", "5m", "-kernel", string(TheKernel()))
	cmd.Env = append(os.Environ(), alone+"=1", "WORKSHOP_BIN="+l.Bin, "WORKSHOP_E2E=require")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in namespaces of its own: %v", err)
	}
	return false
}

// OwnEngine is an engine that a test may stop: own socket, data, containerd.
type OwnEngine struct {
	service ownengine.Service
	t       *testing.T
}

// NewEngine starts one, for a test that runs [Alone], and makes it the engine
// of everything that the test does. It ends with the test, with all in it.
func NewEngine(t *testing.T, args ...string) *OwnEngine {
	t.Helper()
	if !slices.Contains(args, "--config-file") {
		more, err := gVisor(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, more...)
	}
	of, err := ownengine.NewDocker(args...)
	if err != nil {
		t.Fatal(err)
	}
	return newOwn(t, *of)
}

func newOwn(t *testing.T, of ownengine.Service) *OwnEngine {
	t.Helper()
	e := &OwnEngine{service: of, t: t}
	t.Setenv("DOCKER_HOST", e.service.Host)
	t.Cleanup(func() {
		if err := e.service.Remove(); err != nil {
			t.Logf("left behind: %v", err)
		}
	})
	e.Start()
	return e
}

// Replace starts another engine at the same socket, after [OwnEngine.Stop]: it has nothing
// of the first one.
func (e *OwnEngine) Replace() {
	e.t.Helper()
	for i, arg := range e.service.Argv {
		if arg == "--data-root" {
			e.service.Argv[i+1] += ".other"
		}
	}
	e.Start()
}

// Host is its DOCKER_HOST.
func (e *OwnEngine) Host() string { return e.service.Host }

// Start starts the engine again after [OwnEngine.Stop].
func (e *OwnEngine) Start() {
	e.t.Helper()
	if err := e.service.Start(); err != nil {
		e.t.Fatal(err)
	}
}

// Stop ends the engine: SIGTERM as at a shutdown, SIGKILL as in a crash.
func (e *OwnEngine) Stop(signal syscall.Signal) {
	e.t.Helper()
	if err := e.service.Stop(signal); err != nil {
		e.t.Fatal(err)
	}
}

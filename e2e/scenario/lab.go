//go:build linux

package scenario

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/workshop"
)

// Lab is what all scenarios of a test program share.
type Lab struct {
	Root     string         // of the repository
	Bin      string         // directory of the programs
	Docker   *client.Client // nil on other engines
	Internet *testnet.Internet

	machine machine
	caller  caller // who runs our programs
	caFile  string // the test internet's CA, for controls

	standing map[*Standing]*Scenario
	vm       machines
}

var (
	lab     *Lab
	labErr  error
	labOnce sync.Once
)

// Main runs the tests and ends what they share; call it from TestMain. On the
// namespace engine everything happens in network and mount namespaces of its
// own, so that it may run beside others.
func Main(m *testing.M) int {
	if intruding() {
		return become()
	}
	flag.Parse()
	switch TheEngine() {
	case Docker, Namespace, Rootless, Podman:
	default:
		fmt.Fprintf(os.Stderr, "-engine %s: there are %s, %s, %s and %s\n", TheEngine(), Docker, Namespace, Rootless, Podman)
		return 2
	}
	if err := checkKernel(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if TheEngine() != Docker || ownDocker() {
		if err := apart(); err != nil {
			fmt.Fprintf(os.Stderr, "in namespaces of its own: %v\n", err)
			return 1
		}
	}
	code := m.Run()
	if otherKernel() {
		_ = os.RemoveAll(os.Getenv("WORKSHOP_BIN"))
	}
	if resolvFile != "" {
		_ = os.Remove(resolvFile)
	}
	if lab != nil {
		lab.close()
	}
	return code
}

// TheLab returns the shared lab. The test is skipped, or fails where nothing
// may be skipped, without root or an engine.
func TheLab(t testing.TB) *Lab {
	t.Helper()
	testutil.Require(t, !testing.Short(), "scenarios don't run with -short")
	testutil.Require(t, os.Geteuid() == 0, "scenarios need root: a test internet, and a look into rooms from outside")
	labOnce.Do(func() { lab, labErr = newLab() })
	if labErr != nil {
		testutil.Require(t, false, labErr.Error())
	}
	return lab
}

func newLab() (*Lab, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	l := &Lab{Root: root, Bin: filepath.Join(root, "bin"), standing: map[*Standing]*Scenario{}}
	if DockerAPI() {
		d, err := newDockerMachine(l)
		if err != nil {
			return nil, err
		}
		l.Docker, l.machine = d.client, d
	}
	if os.Getenv("WORKSHOP_BIN") != "" {
		l.Bin = os.Getenv("WORKSHOP_BIN")
	} else if l.Bin, err = makeBuild(root); err != nil {
		return nil, err
	}
	if err := l.caller.prepare(l); err != nil {
		return nil, err
	}
	if TheKernel() == workshop.KernelVM {
		if err := l.makeKit(); err != nil {
			return nil, err
		}
		l.caller.more = l.vm.environ()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if l.Internet, err = testnet.Start(ctx, testnet.Options{}); err != nil {
		return nil, err
	}
	if l.caFile, err = l.writeCA(); err != nil {
		l.close()
		return nil, err
	}
	l.caller.caFile = l.caFile
	if l.machine == nil {
		if l.machine, err = newNamespaceMachine(l); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *Lab) writeCA() (string, error) {
	f, err := os.CreateTemp("", "workshop-e2e-ca-*.pem")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := f.Chmod(0o644); err != nil {
		return "", err
	}
	_, err = f.Write(l.Internet.CA)
	return f.Name(), err
}

// close removes what belongs to the lab.
func (l *Lab) close() {
	for w := range l.standing {
		l.lower(afterwards{}, w)
	}
	if l.machine != nil {
		l.machine.close()
	}
	_ = os.Remove(l.caFile)
	if l.vm.dir != "" {
		_ = os.RemoveAll(l.vm.dir)
	}
	if l.Internet != nil {
		l.Internet.Close()
	}
	l.caller.remove()
}

// Workshop is the path of the program that the scenarios test.
func (l *Lab) Workshop() string { return filepath.Join(l.Bin, "workshop") }

// Init is the path of workshop-init for this machine.
func (l *Lab) Init() string { return filepath.Join(l.Bin, "workshop-init-linux-"+runtime.GOARCH) }

// repository finds the directory of go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

func command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = dir
	return c
}

// Listen listens on an address of this machine until the test ends: the
// thing that a worker must not reach. It counts what came.
func Listen(t testing.TB, addr string) (listening string, count func() int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	n := 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			_, _ = c.Write([]byte("host\n"))
			c.Close()
		}
	}()
	return l.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

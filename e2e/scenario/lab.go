//go:build linux

package scenario

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/llmdo/workshop/internal/testnet"
	"github.com/llmdo/workshop/internal/testutil"
)

// Lab is what all scenarios of a test program share.
type Lab struct {
	Root     string // of the repository
	Bin      string // directory of the programs
	Docker   *client.Client
	Internet *testnet.Internet

	caFile  string // the test internet's CA, for controls
	control string // ID of the ordinary container, see control.go
	mu      sync.Mutex
}

var (
	lab     *Lab
	labErr  error
	labOnce sync.Once
)

// Main runs the tests and ends what they share; call it from TestMain.
func Main(m *testing.M) int {
	code := m.Run()
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
	l := &Lab{Root: root, Bin: filepath.Join(root, "bin")}
	if l.Docker, err = client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := l.Docker.Ping(ctx); err != nil {
		return nil, fmt.Errorf("no Docker engine answers (scripts/with-engine starts one): %w", err)
	}
	if os.Getenv("WORKSHOP_BIN") != "" {
		l.Bin = os.Getenv("WORKSHOP_BIN")
	} else if out, err := command(root, "make", "build").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make build: %w\n%s", err, out)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if l.Internet, err = testnet.Start(ctx, testnet.Options{}); err != nil {
		return nil, err
	}
	if l.caFile, err = l.writeCA(); err != nil {
		l.close()
		return nil, err
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
	l.closeControl()
	_ = os.Remove(l.caFile)
	if l.Internet != nil {
		l.Internet.Close()
	}
	l.Docker.Close()
}

// Workshop is the path of the program that the scenarios test.
func (l *Lab) Workshop() string { return filepath.Join(l.Bin, "workshop") }

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

// HostAddress listens on an address of this machine until the test ends: the
// thing that a worker must not reach. It counts what came.
func HostAddress(t testing.TB, addr string) (listening string, count func() int) {
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

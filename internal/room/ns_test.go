//go:build linux

package room

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/room/handover"
)

// The test binary is also the room, in a network namespace of its own, and
// the programs that a worker would run in it.
const roleVariable = "WORKSHOP_ROOM_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "room with NFLOG taken":
		os.Exit(takeNFLog())
	case "room without netfilter":
		os.Exit(withoutNetfilter())
	case "room without netfilter, with packet sockets":
		os.Exit(withPackets(os.Args))
	case "room of a user namespace":
		os.Exit(becomeRoom("room"))
	case "room of a user namespace without netfilter":
		os.Exit(becomeRoom("room without netfilter"))
	case "room":
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	default:
		os.Exit(attack(role))
	}
}

func requireRoot(t testing.TB) {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
}

// testRoom is a room in a process and network namespace of its own.
type testRoom struct {
	t    testing.TB
	cmd  *exec.Cmd
	dir  string
	out  *bufio.Reader
	said chan string // its first line
}

func self(t testing.TB, role string, args ...string) *exec.Cmd {
	// Not by its path, which other users may not reach.
	cmd := exec.Command("/proc/self/exe", args...)
	// The race detector would sleep a second at the end of each process.
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// startRoom makes a room and waits until it is ready.
func startRoom(t testing.TB, args ...string) *testRoom {
	t.Helper()
	r := launchRoom(t, nil, args...)
	if line := <-r.said; line != "READY" {
		t.Fatalf("the room said %q", line)
	}
	return r
}

// launchRoom starts the process; prepare may change it before.
func launchRoom(t testing.TB, prepare func(*exec.Cmd), args ...string) *testRoom {
	t.Helper()
	requireRoot(t)
	dir, err := os.MkdirTemp("", "ws-room")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := self(t, "room", append([]string{"--name", "room", "--dir", dir, "--guard-uid", "0"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	if prepare != nil {
		prepare(cmd)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &testRoom{t: t, cmd: cmd, dir: dir, out: bufio.NewReader(out), said: make(chan string, 1)}
	started := make(chan error)
	// Pdeathsig is tied to the thread that forks, so that thread must live on.
	go func() {
		runtime.LockOSThread()
		err := becomeCaller(cmd.SysProcAttr)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		select {}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	go func() {
		line, _ := r.out.ReadString('\n')
		if strings.HasPrefix(line, made.Prefix) {
			line, _ = r.out.ReadString('\n')
		}
		r.said <- strings.TrimSpace(line)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	})
	return r
}

func (r *testRoom) path() string { return filepath.Join(r.dir, "room.sock") }

// client connects as the guard does.
func (r *testRoom) client() *handover.Client {
	r.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := handover.Dial(context.Background(), r.path())
		if err == nil {
			if _, err = c.Counters(); err == nil {
				r.t.Cleanup(func() { c.Close() })
				return c
			}
			c.Close()
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("connect as guard: %v", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// redirect tells the room the policy's ports as a guard does, which then goes.
func (r *testRoom) redirect(list string) []firewall.PortRange {
	r.t.Helper()
	ports, err := firewall.ParsePorts(list)
	if err != nil {
		r.t.Fatal(err)
	}
	c := r.client()
	defer c.Close()
	if _, err := c.Redirect(ports); err != nil {
		r.t.Fatal(err)
	}
	return ports
}

func (r *testRoom) sockets() handover.Sockets {
	r.t.Helper()
	s, err := r.client().Sockets()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	return s
}

// inside runs f on a thread that is in the room's network namespace.
func (r *testRoom) inside(f func()) {
	r.t.Helper()
	inNamespace(r.t, r.cmd.Process.Pid, f)
}

func inNamespace(t testing.TB, pid int, f func()) {
	t.Helper()
	testutil.InNetwork(t, pid, func() error { f(); return nil })
}

// command runs a program of the machine in the room, as root.
func (r *testRoom) command(stdin string, name string, args ...string) string {
	r.t.Helper()
	_, err := exec.LookPath(name)
	testutil.Require(r.t, err == nil, name+" is not installed")
	var out []byte
	r.inside(func() {
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err = cmd.CombinedOutput()
	})
	if err != nil {
		r.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

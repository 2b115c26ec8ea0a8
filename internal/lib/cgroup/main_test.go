//go:build linux

package cgroup

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// roleEnv makes the test binary one of the processes that the tests limit.
const roleEnv = "CGROUP_TEST_ROLE"

var roles = map[string]func(arg string){
	"sleep": func(string) { time.Sleep(time.Minute) },
	"spin": func(string) {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		}
	},
	"eat":    eat,
	"fork":   fork,
	"mounts": seeMounts,
	"drop":   drop,
	"find": func(string) {
		p, err := Find()
		fmt.Println(p, err)
	},
}

// Namespaces are a thread's: a role that makes some stays on the first one.
func init() {
	if os.Getenv(roleEnv) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	name, arg, _ := strings.Cut(os.Getenv(roleEnv), " ")
	if role := roles[name]; role != nil {
		if name != "drop" && name != "find" { // until the test says that it may
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		role(arg)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// eat uses so many MiB.
func eat(arg string) {
	n, _ := strconv.Atoi(arg)
	b, err := unix.Mmap(-1, 0, n<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	fmt.Println("full")
}

// fork starts processes until it can't, or has so many. With "hold" it stays
// with them.
func fork(arg string) {
	count, hold, _ := strings.Cut(arg, " ")
	n, _ := strconv.Atoi(count)
	started := 0
	for range n {
		_, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, nil)
		if err != nil {
			fmt.Println(started, err == syscall.EAGAIN, err)
			if hold == "" {
				return
			}
			time.Sleep(time.Minute)
		}
		started++
	}
	fmt.Println(started, "all of them")
}

// child is a process of a role that waits until it is told to go.
type child struct {
	*exec.Cmd
	in  *os.File
	out *bufio.Reader
}

func start(t *testing.T, role string, attr *syscall.SysProcAttr) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = attr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	c := &child{cmd, w, bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w.Close()
	})
	return c
}

// startIn starts a role that is in the group before it does anything.
func startIn(t *testing.T, g *Group, role string) *child {
	t.Helper()
	c := start(t, role, nil)
	if err := g.Add(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	c.tell()
	return c
}

func (c *child) tell() { _, _ = c.in.Write([]byte{1}) }

func (c *child) line() string {
	s, _ := c.out.ReadString('\n')
	return strings.TrimSpace(s)
}

// anyoneRuns is a copy of this program that every user can start: the go
// command's own stands in a directory that only root can enter.
func anyoneRuns(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cgroup-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "cgroup.test")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

const ordinary = 1000

func asOrdinary() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
}

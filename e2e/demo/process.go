package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testnet"
)

// within is set in the process that runs on the machine of the demo's own.
const within = "WORKSHOP_DEMO_WITHIN"

// machine runs this program again in namespaces of its own and returns its exit
// code: its network is the machine's for everything that follows, so the test
// internet needs no root, and nothing of it remains.
func machine(ctx context.Context) int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), within+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		a := cmd.SysProcAttr
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "demo: error: no namespaces can be made here: %v (with Docker: make demo ENGINE=docker)\n", err)
		return 1
	}
	// An interrupt reaches it too, and it cleans up.
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// process stands beside a workshop without Docker.
type process struct{ internet *testnet.Internet }

func (p *process) name() string { return "process" }

func (p *process) start(s *stage) error {
	// What this process starts is ordinary: it has none of the capabilities that
	// the test internet needs.
	defer func() {
		_, _, _ = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	}()
	if err := testnet.LoopbackUp(); err != nil {
		return err
	}
	// As distributions have it: anybody may send an echo request (icmp(7)).
	group := fmt.Sprintf("%d %d", os.Getgid(), os.Getgid())
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte(group), 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, internetWait)
	defer cancel()
	in, err := testnet.Start(ctx, testnet.Options{Control: filepath.Join(s.dir, "control.sock")})
	if err != nil {
		return fmt.Errorf("the test internet did not start: %w", err)
	}
	p.internet = in
	return os.WriteFile(filepath.Join(s.dir, "ca.pem"), in.CA, 0o644)
}

func (p *process) ordinary(s *stage, probes []string) *exec.Cmd {
	probes = slices.Clone(probes)
	for i := range probes {
		probes[i] = strings.Replace(probes[i], "ca=/ca.pem", "ca="+filepath.Join(s.dir, "ca.pem"), 1)
	}
	return exec.CommandContext(s.ctx, filepath.Join(s.bin, "workshop-init-linux-"+runtime.GOARCH), append([]string{"probe"}, probes...)...)
}

// up goes without limits where the machine gives this user no cgroup, and says
// so.
func (p *process) up(s *stage) ([]string, error) {
	out, err := s.workshop("capabilities", "--format", "json")
	if err != nil {
		return nil, err
	}
	var found struct {
		Promises []struct {
			Promise, How string
			Held         bool
			Do           []string
		}
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, err
	}
	for _, f := range found.Promises {
		if f.Promise == "B5" && !f.Held {
			fmt.Printf("Limits of memory, cpu and processes (B5) are %s\nThe demo goes on with --without-limits.\n", f.How)
			return []string{"--without-limits"}, nil
		}
	}
	return nil, nil
}

func (p *process) close(*stage) error {
	if p.internet != nil {
		p.internet.Close()
	}
	return nil
}

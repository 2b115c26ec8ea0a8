//go:build linux

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/probe"
)

// hostAddr is an address of this machine in the middle of the test internet:
// nothing but that it is the machine's own forbids it.
const hostAddr = "198.51.100.200"

// hostInInternet gives this machine's loopback [hostAddr], and routes to
// everywhere else by the test internet, as a machine has them.
func hostInInternet() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(hostAddr + "/32")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(lo, addr); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Gw: net.ParseIP("198.18.0.2")})
}

func (m *namespaceMachine) hostAddress(*Scenario) string { return hostAddr }

func (m *namespaceMachine) addresses(*Scenario) (guard, peer string) {
	return "198.18.0.1", "198.18.0.2"
}

// control is a process of root on this machine.
func (m *namespaceMachine) control(s *Scenario, program string, probes []string) ([]probe.Result, error) {
	if program == "" {
		program = s.Init()
	}
	argv := []string{"probe"}
	for _, p := range probes {
		argv = append(argv, strings.ReplaceAll(p, "ca=/ca.pem", "ca="+s.caFile))
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(program, argv...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	r, err := checked(probes, out.String(), cmd.ProcessState.ExitCode(), nil)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &errs)
	}
	return r, err
}

// intrusion is what a child of the test program is told to become.
const intrusion = "WORKSHOP_E2E_INTRUDER"

type intruded struct {
	Net, Root string
	Caps      []uintptr
	Args      []string
}

// dockerCaps are the capabilities that Docker gives unless told otherwise
// (docs.docker.com/engine/containers/run, "Runtime privilege and Linux capabilities").
var dockerCaps = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
}

// intrude runs probes as a process of its own in the service's network
// namespace: with other namespaces, a root and rights of its own, and without a
// seccomp filter.
func (m *namespaceMachine) intrude(s *Scenario, i *Intruder, probes []string) ([]probe.Result, error) {
	pid := s.Pid(i.Service)
	if i.root == "" {
		i.root = s.TB.TempDir()
		files := map[string]string{initimage.EntryPoint: s.Init()}
		for target, source := range i.Files {
			files[target] = source
		}
		for _, name := range []string{"hosts", "resolv.conf"} {
			files["/etc/"+name] = fmt.Sprintf("/proc/%d/root/etc/%s", s.Pid("worker"), name)
		}
		for target, source := range files {
			if err := copyFile(source, filepath.Join(i.root, target)); err != nil {
				return nil, err
			}
		}
		for _, dir := range []string{"proc", "scratch", "tmp", "dev"} {
			if err := os.MkdirAll(filepath.Join(i.root, dir), 0o777); err != nil {
				return nil, err
			}
		}
	}
	program := i.Program
	if program == "" {
		program = initimage.EntryPoint
	}
	what := intruded{Net: fmt.Sprintf("/proc/%d/ns/net", pid), Root: i.root, Args: append([]string{program, "probe"}, probes...)}
	if !i.NoCapabilities {
		what.Caps = dockerCaps
	}
	told, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{intrusion + "=" + string(told)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	r, err := checked(probes, out.String(), cmd.ProcessState.ExitCode(), nil)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &errs)
	}
	return r, err
}

// intruding reports whether this process is to become an intruder.
func intruding() bool { return os.Getenv(intrusion) != "" }

// become becomes it; it returns where that failed.
func become() int {
	runtime.LockOSThread()
	var i intruded
	err := json.Unmarshal([]byte(os.Getenv(intrusion)), &i)
	if err == nil {
		err = i.enter()
	}
	if err == nil {
		err = i.drop()
	}
	if err == nil {
		err = syscall.Exec(i.Args[0], i.Args, []string{"PATH=/", "HOME=/scratch"})
	}
	fmt.Fprintln(os.Stderr, "intruder:", err)
	return 125
}

func (i *intruded) enter() error {
	ns, err := os.Open(i.Net)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	null := filepath.Join(i.Root, "dev/null")
	return errors.Join(
		os.WriteFile(null, nil, 0o666),
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(i.Root, i.Root, "", unix.MS_BIND, ""),
		unix.Mount("proc", filepath.Join(i.Root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
		unix.Mount("/dev/null", null, "", unix.MS_BIND, ""),
		// As in every container: who is root of a user namespace may change its
		// network's settings without a capability.
		unix.Mount(filepath.Join(i.Root, "proc/sys"), filepath.Join(i.Root, "proc/sys"), "", unix.MS_BIND, ""),
		unix.Mount("", filepath.Join(i.Root, "proc/sys"), "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
		unix.Chroot(i.Root), unix.Chdir("/"))
}

// drop leaves uid 0 with the capabilities alone that are named.
func (i *intruded) drop() error {
	keep := map[uintptr]bool{}
	for _, c := range i.Caps {
		keep[c] = true
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if !keep[c] {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { // one that this kernel doesn't know
				return err
			}
		}
	}
	// What is inheritable would come back at exec (capabilities(7)).
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return err
	}
	return unix.Setgroups([]int{})
}

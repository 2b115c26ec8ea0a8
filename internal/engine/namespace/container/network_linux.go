package container

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// The arguments of Main by which it makes a network namespace; the second is for a
// room that may lack netfilter.
const (
	newNetworkArg = "network"
	newRoomArg    = "room"
)

// namespace is a new network namespace, by a descriptor.
type namespace struct {
	fd      int
	instead instead
	err     error
}

// makeNetwork makes a network namespace in a separate thread, which then ends.
func makeNetwork(to chan<- namespace, anyIP bool) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		to <- namespace{fd: -1, err: err}
		return
	}
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	n := namespace{fd: fd, err: err}
	if anyIP && err == nil {
		n.instead = withoutNetfilter()
	}
	to <- n
}

// network joins the given or created namespace, and brings up its loopback
// interface, except in a room, which does that itself.
func (s *stage) network() error {
	mode := s.c.Network.Mode
	if fresh := mode == spec.NetNone || mode == spec.NetRoom; fresh != (s.newNetwork != nil) {
		return fmt.Errorf("the network mode %s doesn't match the new network", mode)
	}
	switch mode {
	case spec.NetHost:
		return nil
	case spec.NetJoin:
		fd := s.first + 2
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("join the network of %s: %w", s.c.Network.Of, err)
		}
		return nil
	}
	if s.anyIP != s.c.Network.AnyIP {
		return fmt.Errorf("the check for netfilter doesn't match the container's network")
	}
	n := <-s.newNetwork
	s.instead = n.instead
	if n.err != nil {
		return fmt.Errorf("a network namespace: %w", n.err)
	}
	defer unix.Close(n.fd)
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	if mode == spec.NetNone {
		if err := loopback(); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
	}
	return nil
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// sysctls writes the sysctls by the container's own /proc, before that becomes
// read-only.
func (s *stage) sysctls() error {
	for name, value := range s.c.Sysctls {
		p, err := sysctlPath(name)
		if err != nil {
			return err
		}
		how := unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
		fd, err := unix.Openat2(s.proc_, "sys/"+p, &how)
		if err == nil {
			_, err = unix.Write(fd, []byte(value))
			err = errors.Join(err, unix.Close(fd))
		}
		if err != nil {
			return fmt.Errorf("the sysctl %s=%s: %w", name, value, err)
		}
	}
	return nil
}

func (s *stage) hostname() error {
	if err := unix.Sethostname([]byte(s.c.Hostname)); err != nil {
		return fmt.Errorf("the host name %q: %w", s.c.Hostname, err)
	}
	return unix.Setdomainname([]byte("(none)")) // hides the machine's
}

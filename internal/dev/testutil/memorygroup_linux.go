package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// MemoryGroup is a memory cgroup that measures a process with its kernel
// buffers: on version 2 the group counts them itself, on version 1 those of TCP
// are a counter of their own.
type MemoryGroup struct {
	dir string
	v2  bool
}

// NewMemoryGroup makes a group with a limit in bytes. It needs root.
func NewMemoryGroup(limit int64) (*MemoryGroup, error) {
	g := &MemoryGroup{}
	parent, err := g.parent()
	if err != nil {
		return nil, err
	}
	if g.dir, err = os.MkdirTemp(parent, "workshop-memory-"); err != nil {
		return nil, err
	}
	settings := [][2]string{{"memory.max", fmt.Sprint(limit)}}
	if !g.v2 {
		// Without a limit version 1 doesn't count buffers of TCP.
		settings = [][2]string{{"memory.limit_in_bytes", fmt.Sprint(limit)}, {"memory.kmem.tcp.limit_in_bytes", fmt.Sprint(int64(8) << 30)}}
	}
	for _, s := range settings {
		if err := g.write(s[0], s[1]); err != nil {
			return nil, errors.Join(err, g.Remove())
		}
	}
	return g, nil
}

// parent returns the directory that groups are made in.
func (g *MemoryGroup) parent() (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(own)) {
		if _, path, ok := strings.Cut(line, ":memory:"); ok {
			return filepath.Join("/sys/fs/cgroup/memory", strings.TrimSpace(path)), nil
		}
	}
	const root = "/sys/fs/cgroup"
	g.v2 = true
	return root, os.WriteFile(root+"/cgroup.subtree_control", []byte("+memory"), 0)
}

// Start starts cmd in the group. The calling thread must not be used for
// anything else afterwards, as in testnet's NS.Do: on version 1 it is in the
// group too.
func (g *MemoryGroup) Start(cmd *exec.Cmd) error {
	if !g.v2 {
		if err := g.write("tasks", strconv.Itoa(unix.Gettid())); err != nil {
			return err
		}
		return cmd.Start()
	}
	fd, err := unix.Open(g.dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
	return cmd.Start()
}

// Now returns what is used, and how much of that are buffers of TCP, in bytes.
func (g *MemoryGroup) Now() (all, tcp int64, err error) {
	if g.v2 {
		all, err = g.number("memory.current", "")
		if err == nil {
			tcp, err = g.number("memory.stat", "sock")
		}
		return all, tcp, err
	}
	if all, err = g.number("memory.usage_in_bytes", ""); err == nil {
		tcp, err = g.number("memory.kmem.tcp.usage_in_bytes", "")
	}
	return all + tcp, tcp, err
}

// Peak returns the most that was used, in bytes: on version 1 the sum of both
// peaks, which may not have been at the same time.
func (g *MemoryGroup) Peak() (int64, error) {
	if g.v2 {
		return g.number("memory.peak", "") // Linux 5.19
	}
	all, err := g.number("memory.max_usage_in_bytes", "")
	if err != nil {
		return 0, err
	}
	tcp, err := g.number("memory.kmem.tcp.max_usage_in_bytes", "")
	return all + tcp, err
}

// Killed returns how many processes of the group the kernel ended for want of
// memory.
func (g *MemoryGroup) Killed() (int64, error) {
	if g.v2 {
		return g.number("memory.events", "oom_kill")
	}
	return g.number("memory.oom_control", "oom_kill")
}

// Remove removes the group; its processes must have ended.
func (g *MemoryGroup) Remove() error { return unix.Rmdir(g.dir) }

func (g *MemoryGroup) write(file, value string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(value), 0)
}

// number reads a file, or the line of it that begins with key.
func (g *MemoryGroup) number(file, key string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if key == "" && len(f) == 1 || len(f) == 2 && f[0] == key {
			return strconv.ParseInt(f[len(f)-1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s: no %q", file, key)
}

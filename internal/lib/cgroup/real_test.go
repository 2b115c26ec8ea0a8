//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// These tests make real groups, as root or where rootless_test.go was given
// some, on whichever version the machine has.

func parent(t *testing.T) *Parent {
	t.Helper()
	p, err := Find()
	var none *Unavailable
	if errors.As(err, &none) && os.Getuid() != 0 {
		testutil.Require(t, os.Getenv(delegatedEnv) == "" && os.Getenv("WORKSHOP_E2E") == "", err.Error())
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Require(); err != nil {
		t.Fatal(err)
	}
	return p
}

func group(t *testing.T, l Limit) *Group {
	t.Helper()
	return groupIn(t, parent(t), "test-"+fmt.Sprint(os.Getpid())+"-"+t.Name(), l)
}

func groupIn(t *testing.T, p *Parent, name string, l Limit) *Group {
	t.Helper()
	g, err := p.New(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestRealMemory(t *testing.T) {
	g := group(t, Limit{MemoryBytes: 64 << 20})
	if got := startIn(t, g, "eat 16").line(); got != "full" {
		t.Errorf("16 of 64 MiB: %q", got)
	}
	if n := g.OOMKills(); n != 0 {
		t.Errorf("%d killed before anything was too large", n)
	}
	big := startIn(t, g, "eat 256")
	err := big.Wait()
	if status := big.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("256 of 64 MiB: %v", err)
	}
	if n := g.OOMKills(); n != 1 {
		t.Errorf("killed for their memory: %d", n)
	}
}

// TestRealLimitInterrupted: version 1 gives EINTR for a memory limit that is written while a
// signal waits (mm/memcontrol.c: mem_cgroup_resize_max), which in a Go program is any time.
func TestRealLimitInterrupted(t *testing.T) {
	g := group(t, Limit{MemoryBytes: 64 << 20})
	end := make(chan struct{})
	defer close(end)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	go func(thread int) {
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	}(unix.Gettid())
	for i := range 500 {
		for _, d := range g.dirs {
			if err := setLimits(d.dir, d.place, Limit{MemoryBytes: 64 << 20}, false); err != nil {
				t.Fatalf("write %d: %v", i, err)
			}
		}
	}
}

func TestRealPIDs(t *testing.T) {
	g := group(t, Limit{PIDs: 40})
	c := startIn(t, g, "fork 100 hold")
	var started int
	var again bool
	if _, err := fmt.Sscan(c.line(), &started, &again); err != nil || !again || started == 0 || started >= 40 {
		t.Errorf("%d started, EAGAIN %v, %v", started, again, err)
	}
	if n := number(g, PIDs, "pids.current", "pids.current"); n != 40 {
		t.Errorf("in use: %d", n)
	}
}

func TestRealCPU(t *testing.T) {
	g := group(t, Limit{CPUs: 0.1})
	startIn(t, g, "spin")
	for range 1000 {
		if text, _ := g.text(CPU, "cpu.stat", "cpu.stat"); strings.Contains(text, "nr_throttled ") {
			if n, _ := field(text, "nr_throttled"); n > 1 {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("never throttled")
}

// TestRealLimits: what is in the files, since no machine here has swap.
func TestRealLimits(t *testing.T) {
	g := group(t, Limit{MemoryBytes: 32<<20 + 5, CPUs: 1.5, PIDs: 7})
	for _, f := range []struct{ limit, v2, v2want, v1, v1want string }{
		{Memory, "memory.max", "33554432", "memory.limit_in_bytes", "33554432"},
		{Memory, "memory.swap.max", "0", "memory.memsw.limit_in_bytes", "33554432"},
		{CPU, "cpu.max", "150000 100000", "cpu.cfs_quota_us", "150000"},
		{PIDs, "pids.max", "7", "pids.max", "7"},
	} {
		text, ok := g.text(f.limit, f.v2, f.v1)
		if got := strings.TrimSpace(text); ok && got != f.v2want && got != f.v1want || !ok && !strings.Contains(f.v1, "memsw") {
			t.Errorf("%s: %q", f.v2, got)
		}
	}
	memory, pids := number(g, Memory, "memory.current", "memory.usage_in_bytes"), number(g, PIDs, "pids.current", "pids.current")
	if memory < 0 || pids != 0 {
		t.Errorf("of an empty group: %d bytes, %d processes", memory, pids)
	}
}

// number is the value of a file of the group, by its names on v2 and v1; -1: none.
func number(g *Group, controller, v2, v1 string) int64 {
	text, ok := g.text(controller, v2, v1)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if !ok || err != nil {
		return -1
	}
	return n
}

// TestRealAllOrNothing: a limit that the kernel refuses leaves nothing behind.
func TestRealAllOrNothing(t *testing.T) {
	p := parent(t)
	name := fmt.Sprintf("nothing-%d", os.Getpid())
	if g, err := p.New(name, Limit{MemoryBytes: 1 << 20, PIDs: 1 << 40}); err == nil {
		t.Error("more processes than numbers")
		g.Remove()
	}
	for _, pl := range p.places {
		if dir := filepath.Join(pl.dir, groupsDir, name); exists(dir) {
			t.Errorf("%s is left", dir)
		}
	}
	g := groupIn(t, p, name, Limit{PIDs: 5})
	if _, err := p.New(name, Limit{PIDs: 9}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second of that name: %v", err)
	}
	if text, _ := g.text(PIDs, "pids.max", "pids.max"); text != "5\n" {
		t.Errorf("the first has %q now", text)
	}
}

func TestRealKill(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			g := groupIn(t, parent(t), fmt.Sprintf("kill-%d", os.Getpid()), Limit{PIDs: 60})
			g.slow = !atOnce // as on v1, and on v2 before 5.14
			c := startIn(t, g, "fork 100 hold")
			c.line()
			if err := g.Remove(); err == nil {
				t.Fatal("a group with processes is removed")
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			if list, err := g.all(); err != nil || len(list) > 0 {
				t.Errorf("left: %v %v", list, err)
			}
		})
	}
}

func TestRealStale(t *testing.T) {
	p := parent(t)
	prefix := fmt.Sprintf("stale%d-", os.Getpid())
	empty, used := groupIn(t, p, prefix+"empty", Limit{PIDs: 20}), groupIn(t, p, prefix+"used", Limit{PIDs: 20})
	other := groupIn(t, p, "other-"+prefix, Limit{PIDs: 20})
	c := startIn(t, used, "sleep")
	if err := CleanStaleIn(p.Dirs(), prefix, false); err == nil || !strings.Contains(err.Error(), used.name) || strings.Contains(err.Error(), empty.name) {
		t.Errorf("of one in use: %v", err)
	}
	if exists(empty.dirs[0].dir) || !exists(used.dirs[0].dir) || !exists(other.dirs[0].dir) {
		t.Error("the empty one should be gone, and no other")
	}
	if err := CleanStaleIn(p.Dirs(), prefix, true); err != nil {
		t.Error(err)
	}
	if exists(used.dirs[0].dir) || !exists(other.dirs[0].dir) {
		t.Error("with kill the used one should be gone, and no other")
	}
	if err := c.Wait(); err == nil {
		t.Error("what was in it lives")
	}
	if err := CleanStaleIn(p.Dirs(), prefix, true); err != nil {
		t.Error("nothing to do:", err)
	}
	if err := CleanStaleIn([]string{"/proc/self/nothing/" + groupsDir}, prefix, true); err != nil {
		t.Error("a place that is gone:", err)
	}
	if err := CleanStaleIn([]string{"/proc"}, prefix, true); err == nil {
		t.Error("a directory without groups is taken")
	}
}

// TestRealMounts: a container sees its group and no other, and can't change it.
func TestRealMounts(t *testing.T) {
	g := group(t, Limit{MemoryBytes: 48 << 20, CPUs: 1, PIDs: 50})
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	var spec strings.Builder
	for _, m := range g.Mounts() {
		fmt.Fprintf(&spec, "%s;%s;%s ", m.Type, m.Options, m.Target)
	}
	c := start(t, "mounts "+spec.String(), attr)
	if err := g.Add(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	c.tell()
	for {
		line := c.line()
		switch {
		case line == "good":
			return
		case line == "":
			t.Fatal("no answer")
		default:
			t.Error(line)
		}
	}
}

func seeMounts(spec string) {
	must := func(what string, err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	must("unshare", unix.Unshare(unix.CLONE_NEWCGROUP))
	must("private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must("tmpfs", unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""))
	for m := range strings.FieldsSeq(spec) {
		f := strings.Split(m, ";")
		must("mkdir", os.MkdirAll("/mnt"+f[2], 0o755))
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		must(m, unix.Mount(f[0], "/mnt"+f[2], f[0], flags, f[1]))
		if f[0] != "tmpfs" {
			must("read-only", unix.Mount("", "/mnt"+f[2], "", flags|unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		}
	}
	text := read("/mnt/sys/fs/cgroup/memory.max") + read("/mnt/sys/fs/cgroup/memory/memory.limit_in_bytes")
	if text != "50331648\n" {
		fmt.Printf("the memory limit reads %q\n", text)
	}
	for _, file := range []string{"/mnt/sys/fs/cgroup/pids.max", "/mnt/sys/fs/cgroup/pids/pids.max"} {
		if err := write(file, "70"); !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.ENOENT) {
			fmt.Println("raising the limit:", err)
		}
	}
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if !strings.HasSuffix(line, ":/\n") {
			fmt.Println("sees more than its own group:", strings.TrimSpace(line))
		}
	}
	fmt.Println("good")
}

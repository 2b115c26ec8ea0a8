package namespace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/peercred"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// endTime is how long a supervisor may take to stop everything and to end.
const endTime = 60 * time.Second

// killTime is how long a process may take to end after SIGKILL.
const killTime = 10 * time.Second

// Tidy ends the supervisor of a project without containers, and removes the
// project's state if it has no networks and volumes either. It doesn't touch the
// state of another project directory.
func (e *Engine) Tidy(ctx context.Context, project, directory string) error {
	seen, err := e.Observe(ctx, project)
	if err != nil || engine.CheckDirectory(seen, directory) != nil || len(seen.Containers) > 0 {
		return err
	}
	return e.settle(ctx, project, len(seen.Networks)+len(seen.Volumes) == 0)
}

// settle ends the supervisor and, with all, removes the project's directory and
// leftover control groups.
func (e *Engine) settle(ctx context.Context, project string, all bool) error {
	e.awaitBegun(project)
	dir := e.dir(project)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := e.end(ctx, project); err != nil {
		return err
	}
	if !all {
		return nil
	}
	if err := cleanGroups(dir); err != nil {
		return err
	}
	// Renamed first: a concurrent reader sees all of it, or nothing.
	if err := os.Rename(dir, filepath.Join(e.opts.StateDir, oldPrefix+project+"-"+newID())); err != nil {
		return err
	}
	return e.removeOld()
}

// oldPrefix begins the names of directories being removed; no project's does.
const oldPrefix = ".old-"

// removeOld removes those directories, including ones of killed commands.
func (e *Engine) removeOld() error {
	list, err := os.ReadDir(e.opts.StateDir)
	for _, d := range list {
		if strings.HasPrefix(d.Name(), oldPrefix) {
			err = errors.Join(err, rmtree.Remove(filepath.Join(e.opts.StateDir, d.Name())))
		}
	}
	return err
}

// cleanGroups removes the control groups that a killed supervisor left.
func cleanGroups(dir string) error {
	f, err := client.State(dir)
	if err != nil && !isForm(err) || f.Cgroup == "" {
		return nil // it never made any, or that is unknown
	}
	return cgroup.CleanStaleIn(f.CgroupDirs, f.Cgroup, true)
}

// end ends the supervisor of a project, and with it everything that it started
// (pid_namespaces(7)), and waits for the end. It kills one that doesn't respond.
func (e *Engine) end(ctx context.Context, project string) error {
	dir := e.dir(project)
	lives, err := client.Lives(dir)
	if err != nil || !lives {
		return err
	}
	pidfd, who := holder(dir)
	if pidfd >= 0 {
		defer unix.Close(pidfd)
	}
	c, silent, err := e.alive(ctx, project)
	if c != nil {
		polite, cancel := context.WithTimeout(ctx, endTime)
		err = c.Shutdown(polite)
		cancel()
	}
	if silent {
		err = errors.New("it doesn't respond")
	}
	if lives, e := client.Lives(dir); e == nil && !lives {
		return waitGone(pidfd)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if pidfd < 0 {
		return fmt.Errorf("the supervisor of project %s doesn't end, and its process isn't found: %w", project, errors.Join(err, who))
	}
	if e := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); e != nil && e != unix.ESRCH {
		return fmt.Errorf("the supervisor of project %s doesn't end (%w) and can't be killed: %w", project, err, e)
	}
	return waitGone(pidfd)
}

// waitGone waits for the end of a process that is ending or killed.
func waitGone(pidfd int) error {
	if pidfd < 0 {
		return nil
	}
	for end := time.Now().Add(killTime); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(max(0, time.Until(end).Milliseconds())))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return errors.New("the supervisor was killed but hasn't ended: one of its processes is blocked in the kernel, perhaps by a file system")
		default:
			return nil
		}
	}
}

// holder finds the supervisor's process without its help: the listener on its
// socket, else the holder of its lock. The process must have our uid and the
// program's name. The descriptor is -1 if it isn't found.
func holder(dir string) (pidfd int, err error) {
	pid, err := listener(dir)
	if err != nil {
		var e error
		if pid, e = lockHolder(filepath.Join(dir, api.LockName)); e != nil {
			return -1, errors.Join(err, e)
		}
	}
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", pid, err)
	}
	// Checked with the pidfd open, so the PID can't be reused.
	if err = oursAt(pid, dir); err == nil {
		err = unix.PidfdSendSignal(pidfd, 0, nil, 0)
	}
	if err != nil {
		unix.Close(pidfd)
		return -1, err
	}
	return pidfd, nil
}

// oursAt returns an error unless a process is our supervisor of that directory.
func oursAt(pid int, dir string) error {
	var st unix.Stat_t
	proc := "/proc/" + strconv.Itoa(pid)
	b, err := os.ReadFile(proc + "/cmdline")
	if err == nil {
		err = unix.Stat(proc+"/ns", &st)
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	args := strings.Split(string(b), "\x00")
	if len(args) < 4 || args[0] != programName || args[1] != "supervise" || args[3] != dir {
		return fmt.Errorf("process %d is not a supervisor of %s", pid, dir)
	}
	return nil
}

// listener returns the process that listens on the supervisor's socket. Connecting
// needs no response from it (SO_PEERCRED, unix(7)).
func listener(dir string) (int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	conn, err := net.DialTimeout("unix", "/proc/self/fd/"+strconv.Itoa(int(d.Fd()))+"/"+api.SocketName, time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	cred, err := peercred.Of(conn.(*net.UnixConn))
	if err != nil {
		return 0, err
	}
	if cred.Pid <= 0 || cred.Uid != uint32(os.Geteuid()) {
		return 0, fmt.Errorf("the socket in %s is served by another user's process", dir)
	}
	return int(cred.Pid), nil
}

// lockHolder finds the holder of a flock in the kernel's list (proc_locks(5)).
func lockHolder(name string) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return 0, err
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, err
	}
	at := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	for line := range strings.Lines(string(b)) {
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
		f := strings.Fields(line)
		if len(f) >= 6 && f[1] == "FLOCK" && f[5] == at {
			if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
				return pid, nil
			}
		}
	}
	return 0, errors.New("no process is known to hold " + name)
}

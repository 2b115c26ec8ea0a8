//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// caller is who runs our programs: root with this process's environment and a state
// directory of its own, or, rootless, [UID] with an environment, directories and control
// groups of its own, as an ordinary user has them after logging in.
type caller struct {
	uid     int
	home    string   // on Docker the state directory is in it, and nothing more
	caFile  string   // certificates that programs on this machine trust
	cgroups []string // directories that are delegated
	more    []string // of the environment
}

// controllers are those that limits need.
var controllers = []string{"memory", "cpu", "pids"}

func (c *caller) prepare(l *Lab) (err error) {
	if u := ordinary; u != nil {
		c.uid, c.home = UID, u.home
		return l.binaries(filepath.Join(u.home, "bin"))
	}
	if c.home, err = os.MkdirTemp("", "workshop-e2e-home-"); err != nil || TheEngine() == Docker {
		return err
	}
	if TheEngine() == Rootless {
		c.uid = UID
		if err := c.delegate(); err != nil {
			return fmt.Errorf("control groups of an ordinary user: %w", err)
		}
		if err := l.binaries(filepath.Join(c.home, "bin")); err != nil {
			return err
		}
	}
	for _, dir := range []string{c.home, c.state()} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, c.uid, c.uid)); err != nil {
			return err
		}
	}
	// Workers see what their workshop mounts from below it.
	if err := os.Chmod(c.home, 0o755); err != nil {
		return err
	}
	return c.makeRuntime()
}

// state is $XDG_STATE_HOME of commands, unless a test gives another.
func (c *caller) state() string { return filepath.Join(c.home, "state") }

// runtime is $XDG_RUNTIME_DIR: on a tmpfs, as it is after logging in.
func (c *caller) runtime() string { return "/dev/shm/" + filepath.Base(c.home) }

func (c *caller) makeRuntime() error {
	return errors.Join(os.Mkdir(c.runtime(), 0o700), os.Chown(c.runtime(), c.uid, c.uid))
}

// environ is the environment of our programs.
func (c *caller) environ() []string {
	if ordinary != nil {
		return append(ordinary.environ(), "SSL_CERT_FILE="+c.caFile)
	}
	if TheEngine() == Docker {
		env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "WORKSHOP_") || strings.HasPrefix(e, "SUDO_") })
		return append(env, "XDG_STATE_HOME="+c.state())
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "XDG_STATE_HOME=" + c.state(), "XDG_RUNTIME_DIR=" + c.runtime(),
		"SSL_CERT_FILE=" + c.caFile}
	env = append(env, c.more...)
	if TheEngine() == Podman {
		env = append(env, "DOCKER_HOST="+os.Getenv("DOCKER_HOST"))
	} else {
		env = append(env, "DOCKER_HOST=unix:///nonexistent", "WORKSHOP_ENGINE=namespace")
	}
	for _, name := range []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOPROXY", "GOCOVERDIR", "CI"} {
		if v, ok := os.LookupEnv(name); ok && c.uid == 0 {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// command is a program run by the caller: its process is what it would be after
// logging in, whatever this one is.
func (c *caller) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	if c.uid == 0 {
		return exec.CommandContext(ctx, path, args...)
	}
	// A process enters its control groups before it is the program: what that
	// starts is in them from its first moment.
	uid := strconv.Itoa(c.uid)
	script := "for d in " + strings.Join(c.cgroups, " ") + `; do echo $$ >"$d/cgroup.procs" || exit 125; done; exec setpriv --reuid ` + uid + " --regid " + uid +
		` --clear-groups --inh-caps=-all -- "$@"`
	return exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, "sh", path}, args...)...)
}

// delegate makes control groups of this run and gives them to the caller, as a
// service manager does for a user (cgroups(7), "Delegation").
func (c *caller) delegate() error {
	name := filepath.Base(c.home)
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &st); err != nil {
		return err
	}
	if st.Type == unix.CGROUP2_SUPER_MAGIC {
		top := filepath.Join("/sys/fs/cgroup", name)
		enable := []byte("+" + strings.Join(controllers, " +"))
		if err := errors.Join(os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", enable, 0), os.Mkdir(top, 0o755), os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), enable, 0)); err != nil {
			return err
		}
		// No processes beside groups: what the caller starts is in a leaf.
		leaf := filepath.Join(top, "session")
		if err := os.Mkdir(leaf, 0o755); err != nil {
			return err
		}
		c.cgroups = []string{leaf}
		return give(c.uid, top, leaf)
	}
	for _, controller := range controllers {
		dir := filepath.Join("/sys/fs/cgroup", controller, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		c.cgroups = append(c.cgroups, dir)
		if err := give(c.uid, dir); err != nil {
			return err
		}
	}
	return nil
}

// give hands over the directories and what moves processes, not the limits.
func give(uid int, dirs ...string) error {
	for _, dir := range dirs {
		for _, name := range []string{"", "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"} {
			if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// remove takes everything of the caller away.
func (c *caller) remove() {
	if c.home == "" || ordinary != nil {
		return
	}
	for _, dir := range c.cgroups {
		if filepath.Base(dir) == "session" {
			dir = filepath.Dir(dir)
		}
		removeGroups(dir)
	}
	_ = os.RemoveAll(c.runtime())
	_ = os.RemoveAll(c.home)
}

// removeGroups removes control groups from below.
func removeGroups(dir string) {
	var all []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for _, path := range slices.Backward(all) {
		_ = unix.Rmdir(path)
	}
}

// as runs f on a thread whose file system and socket rights are the caller's.
func (c *caller) as(f func() error) error {
	if c.uid == 0 {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		// The system call itself is the thread's alone (setresuid(2), NOTES).
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESGID, ^uintptr(0), uintptr(c.uid), ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(c.uid), ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		done <- f()
	}()
	return <-done
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

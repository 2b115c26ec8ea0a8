//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

// benchUser is the user of the rows "rootless": a uid that needs no account.
const benchUser = 61001

// need installs programs that are missing, each as program=package.
func (b *bench) need(programs ...string) error {
	out, err := exec.CommandContext(b.ctx, filepath.Join(filepath.Dir(b.bin), "scripts/need"), programs...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// namespaces measures the namespace engine, as root and as an ordinary user,
// against bwrap and Docker.
func (b *bench) namespaces(sizes string) error {
	if err := b.need("bwrap=bubblewrap"); err != nil {
		return err
	}
	if err := b.importImage(); err != nil {
		return err
	}
	for _, uid := range []int{0, benchUser} {
		if err := b.starts(uid); err != nil {
			return err
		}
	}
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := b.besideDocker(n); err != nil {
			return err
		}
	}
	return nil
}

// user is the user that runs our programs, with its own directories.
type user struct {
	uid  int
	home string
}

func (b *bench) user(uid int) (*user, error) {
	u := &user{uid: uid, home: filepath.Join(b.dir, fmt.Sprintf("home-%d", uid))}
	if err := os.MkdirAll(u.home, 0o700); err != nil {
		return nil, err
	}
	return u, os.Chown(u.home, uid, uid)
}

// command runs a program as the user.
func (u *user) command(b *bench, dir, name string, args ...string) func() error {
	return func() error {
		_, err := u.output(b, dir, name, args...)
		return err
	}
}

// output runs a program as the user and returns what it prints.
func (u *user) output(b *bench, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.home, "TMPDIR=" + u.home, "DOCKER_HOST=" + os.Getenv("DOCKER_HOST")}
	if u.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// as runs f with the user's id, which a supervisor asks its callers for.
func (u *user) as(f func() error) error {
	if u.uid == 0 {
		return f()
	}
	runtime.LockOSThread() // the id is this thread's alone
	defer runtime.UnlockOSThread()
	set := func(uid int) error {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			return errno
		}
		return nil
	}
	if err := set(u.uid); err != nil {
		return err
	}
	err := f()
	if back := set(0); back != nil {
		panic(back) // this thread must not go on as somebody else
	}
	return err
}

// hello writes a workshop of one worker without a network, on this machine's
// programs.
func (b *bench) hello(u *user) (string, error) {
	dir := filepath.Join(u.home, "hello")
	if err := os.MkdirAll(filepath.Join(dir, "workers"), 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"workshop.yaml":  "workshop:\n  name: bench-hello\n  container: {image: host, resources: {memory: 128M, cpu: 1, pids: 64}}\n  workers: [one]\n",
		"workers/one.md": "---\nname: one\ndescription: Measures nothing itself.\nallowed-tools: Read\n---\nYou are measured.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, filepath.WalkDir(u.home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, u.uid, u.uid)
	})
}

// starts measures one container with all its fences that runs /bin/true, from the
// request to the supervisor until it has ended, and a command in a worker.
func (b *bench) starts(uid int) error {
	who := map[bool]string{true: "root", false: "rootless"}[uid == 0]
	u, err := b.user(uid)
	if err != nil {
		return err
	}
	dir, err := b.hello(u)
	if err != nil {
		return err
	}
	up := []string{"--engine", "namespace", "up"}
	if uid != 0 {
		up = append(up, "--without-limits")
	}
	if err := u.command(b, dir, b.workshop(), up...)(); err != nil {
		return err
	}
	defer func() {
		if err := u.command(b, dir, b.workshop(), "--engine", "namespace", "down")(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
	var c *client.Client
	var one string
	if err := u.as(func() (err error) {
		if c, err = client.Dial(b.ctx, filepath.Join(u.home, ".local/state/workshop/namespace/bench-hello")); err == nil {
			one, err = b.startable(c)
		}
		return err
	}); err != nil {
		return err
	}
	defer func() { // it has the worker's labels: `down` takes it for the same one
		if err := u.as(func() error { return c.Remove(b.ctx, one) }); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
	run := func() error {
		return u.as(func() error {
			if err := c.Start(b.ctx, one); err != nil {
				return err
			}
			_, err := c.Ready(b.ctx, one) // when it has ended
			return err
		})
	}
	image := []string{"run", "--rm", "--network", "none", benchImage, "/bin/true", "--help"}
	t, err := b.compete(max(11, b.rounds),
		contender{run, 20},
		contender{u.command(b, "/", "bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"), 20},
		contender{u.command(b, dir, b.workshop(), "exec", "one", "--", "/bin/true"), 3},
		contender{b.dockerTrue(image), 1},
	)
	if err != nil {
		return err
	}
	b.add(row{what: "start to the end of /bin/true, " + who, against: "bwrap --unshare-all", ours: t[0].median(), other: t[1].median(), unit: "ms", limit: 1.5,
		note: fmt.Sprintf("from the request to the supervisor to its answer that it ended; p95 %.1f ms, bwrap's %.1f ms. bwrap: the whole process, without seccomp, limits, masks or a /dev", t[0].p(95), t[1].p(95))})
	b.add(row{what: "start to the end of /bin/true, " + who, against: "docker run --network none", ours: t[0].median(), other: t[3].median(), unit: "ms", limit: 0.05})
	b.add(row{what: "workshop exec -- true, " + who, against: "docker run --network none", ours: t[2].median(), other: t[3].median(), unit: "ms"})
	return nil
}

func (b *bench) dockerTrue(args []string) func() error {
	return func() error {
		// The image's one program ends with 2: it is workshop-init.
		out, err := exec.CommandContext(b.ctx, "docker", args...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !(asExit(err, &exit) && exit.ExitCode() == 2) {
			return fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

// startable makes a container like the worker that ends at once, and can be
// started again and again.
func (b *bench) startable(c *client.Client) (service string, err error) {
	all, err := c.List(b.ctx)
	if err != nil {
		return "", err
	}
	for _, seen := range all {
		if seen.Container.Role != spec.Worker {
			continue
		}
		one := seen.Container
		one.Service, one.Name = "bench", "bench"
		one.Process.Args = []string{"/bin/true"}
		return one.Service, c.Create(b.ctx, &one)
	}
	return "", fmt.Errorf("the workshop has no worker")
}

// besideDocker measures up and down of n workers in one room on both engines.
func (b *bench) besideDocker(n int) error {
	dir, err := b.hostWorkers(fmt.Sprintf("bench-host-%d", n), n)
	if err != nil {
		return err
	}
	own, docker := []string{"--engine", "namespace"}, []string{"--engine", "docker"}
	do := func(engine []string, verb string) contender {
		return contender{func() error { _, err := b.timed(dir, nil, b.workshop(), append(engine[:2:2], verb)...); return err }, 1}
	}
	t, err := b.compete(max(3, b.rounds*5/max(5, n)), do(own, "up"), do(own, "down"), do(docker, "up"), do(docker, "down"))
	if err != nil {
		_, _ = b.timed(dir, nil, b.workshop(), append(own, "down")...)
		_, _ = b.timed(dir, nil, b.workshop(), append(docker, "down")...)
		return err
	}
	b.add(row{what: fmt.Sprintf("up, %d workers, namespace", n), against: "the same on docker", ours: t[0].median(), other: t[2].median(), unit: "ms", limit: 0.16})
	b.add(row{what: fmt.Sprintf("down, %d workers, namespace", n), against: "the same on docker", ours: t[1].median(), other: t[3].median(), unit: "ms"})
	return nil
}

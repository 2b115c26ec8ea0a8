//go:build linux

package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// subordinate are the ids that an ordinary user may map (subuid(5)).
const subordinate = "100000:65536"

// user is an ordinary user with an engine; its home is that of [caller].
type user struct{ home, runtime string }

// ordinary is who runs our programs in a test that called [AsUser]; else nil.
var ordinary *user

// AsUser makes [UID] an ordinary user who may map ids, for a test that runs [Alone].
// From then on our programs run as that user, with the engine that the test starts.
func AsUser(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-user.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(filepath.Join(dir, "dev"), unix.MNT_DETACH)
		_ = os.RemoveAll(dir)
	})
	ordinary = &user{home: filepath.Join(dir, "home"), runtime: filepath.Join(dir, "run")}
	err = os.Chmod(dir, 0o755)
	for _, d := range []string{ordinary.home, ordinary.runtime} {
		err = errors.Join(err, os.Mkdir(d, 0o700), os.Chown(d, UID, UID))
	}
	if err = errors.Join(err, os.Chmod(ordinary.home, 0o755), accounts(dir), devices(dir), resolver()); err != nil {
		t.Fatal(err)
	}
}

// accounts binds files over the machine's, in which the user has a name and ids.
func accounts(dir string) error {
	id := strconv.Itoa(UID)
	lines := map[string]string{
		"passwd": "wsuser:x:" + id + ":" + id + "::" + ordinary.home + ":/bin/sh\n",
		"group":  "wsuser:x:" + id + ":\n",
		"subuid": "wsuser:" + subordinate + "\n",
		"subgid": "wsuser:" + subordinate + "\n",
	}
	other := regexp.MustCompile(`(?m)^(wsuser|[^:\n]*:[^:\n]*:` + id + `):.*\n`)
	for name, line := range lines {
		at := "/etc/" + name
		old, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, append([]byte(line), other.ReplaceAll(old, nil)...), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, at, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// devices makes /dev/net/tun and /dev/fuse usable by everybody, as udev does.
func devices(dir string) error {
	dev := filepath.Join(dir, "dev")
	if err := errors.Join(os.Mkdir(dev, 0o755), unix.Mount("tmpfs", dev, "tmpfs", 0, "mode=0755")); err != nil {
		return err
	}
	for at, minor := range map[string]uint32{"/dev/net/tun": 200, "/dev/fuse": 229} {
		file := filepath.Join(dev, filepath.Base(at))
		if err := unix.Mknod(file, unix.S_IFCHR|0o666, int(unix.Mkdev(10, minor))); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(file, 0o666), unix.Mount(file, at, "", unix.MS_BIND, "")); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}

// environ is the environment of the user's programs.
func (u *user) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.home, "XDG_RUNTIME_DIR=" + u.runtime, "DOCKER_HOST=" + os.Getenv("DOCKER_HOST")}
}

// Without leaves programs out of the PATH of the user of [AsUser].
func Without(t *testing.T, programs ...string) {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(ordinary.home), "bin.")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		all, _ := os.ReadDir(from)
		for _, e := range all {
			if to := filepath.Join(dir, e.Name()); !slices.Contains(programs, e.Name()) {
				if failed := os.Symlink(filepath.Join(from, e.Name()), to); !errors.Is(failed, fs.ErrExist) {
					err = errors.Join(err, failed)
				}
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// NewRootlessEngine starts a Docker Engine of the user of [AsUser], as Docker's
// dockerd-rootless.sh does, and makes it the engine of everything that the test does.
func NewRootlessEngine(t *testing.T) {
	t.Helper()
	u := ordinary
	at := func(name string) string { return filepath.Join(u.runtime, name) }
	u.engine(t, at("docker.sock"), nil,
		"rootlesskit", "--state-dir="+at("rk"), "--net=slirp4netns", "--mtu=65520", "--disable-host-loopback", "--port-driver=builtin",
		"--copy-up=/etc", "--copy-up=/run", "--propagation=rslave",
		"sh", "-c", "rm -f /run/docker /run/containerd /run/xtables.lock; exec "+strings.Join([]string{
			"dockerd", "--rootless", "--host", "unix://" + at("docker.sock"), "--data-root", filepath.Join(u.home, "docker"), "--exec-root", at("exec"), "--pidfile", at("docker.pid"),
			"--bip", "10.219.255.1/24", "--default-address-pool", "base=10.219.0.0/17,size=24", "--storage-driver", "vfs",
		}, " "))
}

// usersPodman is how podman runs here: without systemd, with a runtime that knows this
// machine's mixture of cgroups, and with a way to the machine's loopback, as a user may want
// it for other containers.
const usersPodman = `[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
network_cmd_options = ["allow_host_loopback=true"]
[network]
network_backend = "netavark"
default_subnet = "10.218.255.0/24"
default_subnet_pools = [{"base" = "10.218.0.0/17", "size" = 24}]
`

// NewRootlessPodman starts podman's service for the user of [AsUser], and makes it the
// engine of everything that the test does. On cgroups of version 1 the user accepts them.
func NewRootlessPodman(t *testing.T) *OwnEngine {
	t.Helper()
	u := ordinary
	conf, settings := filepath.Join(u.home, "containers.conf"), filepath.Join(u.home, ".config/workshop/config.yaml")
	err := errors.Join(os.WriteFile(conf, []byte(usersPodman), 0o644), os.MkdirAll(filepath.Dir(settings), 0o755))
	if _, v2 := os.Stat("/sys/fs/cgroup/cgroup.controllers"); v2 != nil {
		err = errors.Join(err, os.WriteFile(settings, []byte("podman: {cgroup_v1: true}\n"), 0o600))
	}
	if err := errors.Join(err, chown(filepath.Join(u.home, ".config"), UID)); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(u.runtime, "podman", "podman.sock")
	if err := errors.Join(os.Mkdir(filepath.Dir(socket), 0o700), os.Chown(filepath.Dir(socket), UID, UID)); err != nil {
		t.Fatal(err)
	}
	return u.engine(t, socket, []string{"CONTAINERS_CONF=" + conf}, "podman", "system", "service", "--time=0", "unix://"+socket)
}

// engine starts an engine as the user.
func (u *user) engine(t *testing.T, socket string, env []string, argv ...string) *OwnEngine {
	t.Helper()
	id := strconv.Itoa(UID)
	t.Cleanup(u.end)
	return newOwn(t, ownengine.Service{Dir: u.runtime, Host: "unix://" + socket, Env: append(u.environ(), env...),
		Argv: append([]string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--inh-caps=-all", "--"}, argv...)})
}

// EndUsersProcesses kills all that the user of [AsUser] runs, so that a podman that is started
// from then on maps ids anew, as after `podman system migrate`.
func EndUsersProcesses() { ordinary.end() }

// end kills what outlives the user's engine: podman's helpers of sessions, which wait five
// minutes, and the process that holds its user namespace. It returns when they have ended.
func (u *user) end() {
	for end := time.Now().Add(10 * time.Second); u.kill() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}

// kill returns how many it found; of a zombie there is nothing to read.
func (u *user) kill() (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		dir := filepath.Dir(file)
		b, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(append(b, env...), []byte(filepath.Dir(u.home)+"/")) {
			ownengine.Kill(filepath.Base(dir))
			n++
		}
	}
	return n
}

// binaries are where the user can read them: the repository may be below a home of root.
func (l *Lab) binaries(dir string) error {
	programs := []string{l.Workshop(), filepath.Join(l.Bin, "llmdo"), l.Init()}
	if vm := filepath.Join(l.Bin, "workshop-vm"); exists(vm) {
		programs = append(programs, vm)
	}
	for _, path := range programs {
		if err := copyFile(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			return err
		}
	}
	l.Bin = dir
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// HasRootless skips the test, or fails it where nothing may be skipped, without the
// programs that an ordinary user's engine needs.
func HasRootless(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		_, err := exec.LookPath(p)
		testutil.Require(t, err == nil, "an engine of an ordinary user needs "+p)
	}
}

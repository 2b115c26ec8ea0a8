package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/landlock"
	"github.com/llmdo/workshop/internal/lib/rmtree"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/toolbox/process"
	"github.com/llmdo/workshop/tool"
)

// defaultPath is PATH as set by the other engines.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// systemFiles are files that programs of a machine read besides those of `image:
// host`: accounts and names.
var systemFiles = []string{
	"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/shells", "/etc/profile", "/etc/inputrc",
	"/run/systemd/resolve", "/var/lib/ca-certificates", "/sys/devices/system/cpu", "/sys/fs/cgroup",
}

// devices are those that a container has too.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// worker is the recorded state of a worker: the description for its sessions, and
// their user.
type worker struct {
	UID, GID int
	Spec     process.Spec
}

// user is the uid and gid of a worker.
type user struct{ uid, gid int }

// userOf parses a user and refuses unavailable ones: without root, all but the
// caller; and root always.
func userOf(service, text string) (user, error) {
	uid, gid, ok := strings.Cut(text, ":")
	u, err := strconv.Atoi(uid)
	g, err2 := strconv.Atoi(gid)
	switch me := os.Geteuid(); {
	case !ok || err != nil || err2 != nil:
		return user{}, &engine.RefusedError{Promise: "B4", Reason: fmt.Sprintf("worker %s has the user %q, which process mode can't look up", service, text), Do: `write it in numbers, as "1000:1000"`}
	case u == 0 || g == 0:
		return user{}, &engine.RefusedError{Promise: "B4", Reason: fmt.Sprintf("worker %s would run as root on this machine", service), Do: "run workshop as an ordinary user, or set `user: \"1000:1000\"` in container"}
	case me != 0 && (u != me || g != os.Getegid()):
		return user{}, &engine.RefusedError{Promise: "B4", Reason: fmt.Sprintf("worker %s wants the user %s, and in process mode you run it, %d:%d", service, text, me, os.Getegid()), Do: "take `user` out of container"}
	}
	return user{u, g}, nil
}

func (e *Engine) workerFile(project, id string) (string, error) {
	dir, err := e.dir(project)
	return filepath.Join(dir, workersName, id+".json"), err
}

// describe writes the description for the sessions of a worker.
func (e *Engine) describe(c *compose.Compiled, service, id string) error {
	s := c.Project.Services[service]
	u, err := userOf(service, s.User)
	if err != nil {
		return err
	}
	grant, err := grantOf(s)
	if err != nil {
		return err
	}
	w := &worker{UID: u.uid, GID: u.gid, Spec: process.Spec{
		Version: process.Version, Grant: grant, Workdir: workdirOf(s),
		System: append(facts.HostPaths("/"), systemFiles...), Devices: devices, Landlock: landlock.ABI() > 0,
	}}
	if w.Spec.Policy, err = policyOf(c, service); err != nil {
		return err
	}
	if w.Spec.Mounts, err = e.mounts(c, s, id, u); err != nil {
		return err
	}
	if w.Spec.Env, err = environment(s, w.Spec.Mounts); err != nil {
		return err
	}
	if w.Spec.Up, err = e.upFile(c.Project.Name, id); err != nil {
		return err
	}
	return e.writeWorker(c.Project.Name, id, w)
}

func (e *Engine) writeWorker(project, id string, w *worker) error {
	file, err := e.workerFile(project, id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return writeJSON(file, w)
}

// upFile returns the path of a file that exists while a worker is up: its sessions
// end when it is removed.
func (e *Engine) upFile(project, id string) (string, error) {
	dir, err := e.data(project)
	return filepath.Join(dir, ownName, id, "up"), err
}

// setUp creates or removes the upFile of a worker.
func (e *Engine) setUp(project, id string, up bool) error {
	file, err := e.upFile(project, id)
	if err != nil {
		return err
	}
	if up {
		if err = os.WriteFile(file, nil, 0o644); err == nil {
			err = os.Chmod(file, 0o644) // regardless of the umask
		}
		return err
	}
	if err = os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (e *Engine) readWorker(project, id string) (*worker, error) {
	file, err := e.workerFile(project, id)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w := &worker{}
	if err := json.Unmarshal(b, w); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return w, nil
}

// forget removes everything recorded of a worker.
func (e *Engine) forget(project, id string) error {
	file, err := e.workerFile(project, id)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := e.data(project)
	if err != nil {
		return err
	}
	return rmtree.Remove(filepath.Join(dir, ownName, id))
}

// workdirOf reads the working directory from the arguments of the worker's
// workshop-init; the service's own is / if that is in a mount.
func workdirOf(s types.ServiceConfig) string {
	dir := s.WorkingDir
	if at := slices.Index(s.Entrypoint, "--workdir"); at >= 0 && at+1 < len(s.Entrypoint) {
		dir = s.Entrypoint[at+1]
	}
	return path.Join("/", dir)
}

// grantOf parses the grant from the arguments of the worker's workshop-init, as
// written by the compile.
func grantOf(s types.ServiceConfig) (tool.Grant, error) {
	at := slices.Index(s.Entrypoint, "--tools")
	if at < 0 || at+1 >= len(s.Entrypoint) {
		return tool.Grant{}, errors.New("the project has no grant of tools")
	}
	g, err := tool.ParseGrant(s.Entrypoint[at+1])
	if err == nil && len(g.MCP) > 0 {
		// Listing tools already starts servers, before any approval.
		return tool.Grant{}, &engine.RefusedError{
			Promise: "B43", Reason: fmt.Sprintf("worker %s has MCP servers (%s): process mode would run their programs as you, before a tool is called", s.Name, strings.Join(slices.Sorted(maps.Keys(g.MCP)), ", ")),
			Do: "use `--isolation namespace`, or remove mcp__ from the worker's tools",
		}
	}
	return g, err
}

// policyOf returns the policy with the worker's room alone and its variables
// expanded (engine.Observed.WorkersOnly); nil for a worker without a network.
func policyOf(c *compose.Compiled, service string) ([]byte, error) {
	if c.Policy == nil {
		return nil, nil
	}
	p, err := firewall.Expand(c.Policy, func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	one := firewall.Policy{Version: p.Version, Workshop: p.Workshop}
	for _, r := range p.Rooms {
		if slices.Contains(r.Workers, service) {
			one.Rooms = append(one.Rooms, r)
		}
	}
	if len(one.Rooms) == 0 {
		return nil, nil
	}
	return firewall.EncodePolicy(&one), nil
}

// environment returns the worker's environment, with paths of this machine in place
// of the worker's, and without the guard's proxy.
func environment(s types.ServiceConfig, mounts []process.Mount) ([]string, error) {
	vars := types.MappingWithEquals{"PATH": ptr(defaultPath)}
	proxy := "http://127.0.0.1:" + strconv.Itoa(firewall.PortProxy)
	guarded := false
	for name, v := range s.Environment {
		vars[name] = v
		guarded = guarded || v != nil && *v == proxy
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		for _, n := range []string{name, strings.ToLower(name)} {
			if v := vars[n]; guarded && v != nil && (*v == proxy || name == "NO_PROXY") {
				delete(vars, n)
			}
		}
	}
	env, err := engine.Environment(vars)
	for i, v := range env {
		name, value, _ := strings.Cut(v, "=")
		env[i] = name + "=" + here(value, mounts)
	}
	return env, err
}

func ptr(s string) *string { return &s }

// here replaces paths of the worker, alone or in a list with colons.
func here(value string, mounts []process.Mount) string {
	parts := strings.Split(value, ":")
	for i, p := range parts {
		if !path.IsAbs(p) || path.Clean(p) != p {
			continue
		}
		best := process.Mount{Target: "/"}
		for _, m := range mounts {
			if len(m.Target) > len(best.Target) && subpath.Within(p, m.Target) {
				best = m
			}
		}
		if best.Source != "" {
			parts[i] = path.Join(best.Source, strings.TrimPrefix(p, best.Target))
		}
	}
	return strings.Join(parts, ":")
}

//go:build linux

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
	"github.com/llmdo/workshop/internal/probe"
	"github.com/llmdo/workshop/workshop"
)

// namespaceMachine is the namespace engine, of root or of the caller. What it
// knows comes from the supervisors of the projects, or, where none runs, from
// what the last one wrote.
type namespaceMachine struct {
	lab *Lab

	mu sync.Mutex
	// seen holds the PID namespaces of each project's containers open, so that
	// no other one gets their number.
	seen   map[string]map[string]*os.File
	groups map[string]string // the beginning of each project's control groups' names
	dirs   map[string]string // state directories of projects that have another than the caller's
}

func newNamespaceMachine(l *Lab) (*namespaceMachine, error) {
	if err := hostInInternet(); err != nil {
		return nil, err
	}
	return &namespaceMachine{lab: l, seen: map[string]map[string]*os.File{}, groups: map[string]string{}, dirs: map[string]string{}}, nil
}

// dir is the state directory of a project.
func (m *namespaceMachine) dir(project string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.lab.caller.state()
	if d := m.dirs[project]; d != "" {
		state = d
	}
	return filepath.Join(state, "workshop/namespace", project)
}

// uses learns where the programs of a scenario keep their state.
func (m *namespaceMachine) uses(s *Scenario) {
	if TheKernel() == workshop.KernelVM {
		m.lab.vm.uses(s)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range s.Env {
		if v, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			m.dirs[s.Project] = v
		}
	}
}

// with asks the supervisor of a project.
func (m *namespaceMachine) with(project string, ask func(*supervisor) error) error {
	s, err := dialSupervisor(&m.lab.caller, m.dir(project))
	if err != nil {
		return err
	}
	defer s.Close()
	return ask(s)
}

// all are the containers, by the supervisor or by its file.
func (m *namespaceMachine) all(project string) (all []api.Seen, lives bool, err error) {
	err = m.with(project, func(s *supervisor) error {
		a, err := s.ask(api.Request{Op: api.OpList})
		all = a.List
		return err
	})
	if err == nil || !errors.Is(err, errNoSupervisor) {
		return all, true, err
	}
	f, err := m.file(project)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	for i := range f.Containers {
		if f.Containers[i].State != api.Created {
			f.Containers[i].State = api.Exited
		}
	}
	return f.Containers, false, err
}

func (m *namespaceMachine) list(project string) (out []Container, err error) {
	all, lives, err := m.all(project)
	for _, seen := range all {
		c := Container{
			ID: seen.Container.Service + " " + seen.Created.Format(time.RFC3339Nano), Service: seen.Container.Service, State: string(seen.State), Started: seen.Started.Format(time.RFC3339Nano),
			Log: Log{Path: filepath.Join(m.dir(project), api.LogDir, seen.Container.Service) + "/", MaxSize: seen.Container.Log.MaxSize, MaxFiles: seen.Container.Log.MaxFiles},
		}
		for _, mount := range seen.Container.Mounts {
			c.Mounts = append(c.Mounts, Mount{mount.Source, mount.Target, string(mount.Type)})
		}
		if lives && seen.State == api.Running {
			// It may have ended since.
			_ = m.with(project, func(s *supervisor) (err error) { c.Pid, err = s.pid(c.Service); return err })
			m.keep(project, c.Pid)
		}
		out = append(out, c)
	}
	m.keepGroups(project)
	return out, err
}

// keepGroups keeps how the project's control groups are named.
func (m *namespaceMachine) keepGroups(project string) {
	if f, err := m.file(project); err == nil && f.Cgroup != "" {
		m.mu.Lock()
		m.groups[project] = f.Cgroup
		m.mu.Unlock()
	}
}

// file is what the project's supervisor has written, or the last one had.
func (m *namespaceMachine) file(project string) (f api.File, err error) {
	b, err := os.ReadFile(filepath.Join(m.dir(project), api.StateName))
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// keep holds the PID namespace of a process, and that of its supervisor.
func (m *namespaceMachine) keep(project string, pid int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen[project] == nil {
		m.seen[project] = map[string]*os.File{}
	}
	path := fmt.Sprintf("/proc/%d/ns/pid", pid)
	name, err := os.Readlink(path)
	if err != nil || m.seen[project][name] != nil {
		return
	}
	if here, _ := os.Readlink("/proc/self/ns/pid"); here == name {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	m.seen[project][name] = f
	// The one that it was made in.
	if fd, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_PARENT); err == nil {
		parent := os.NewFile(uintptr(fd), "pid")
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && m.seen[project][name] == nil {
			if here, _ := os.Readlink("/proc/self/ns/pid"); here != name {
				m.seen[project][name] = parent
				return
			}
		}
		parent.Close()
	}
}

func (m *namespaceMachine) view(project string, c Container) (View, error) {
	all, _, err := m.all(project)
	if err != nil {
		return View{}, err
	}
	for _, seen := range all {
		if seen.Container.Service == c.Service {
			env := seen.Container.Process.Env
			seen.Container.Process.Env = nil
			rest, err := json.Marshal(seen)
			return View{env, string(rest)}, err
		}
	}
	return View{}, fmt.Errorf("no container of %s", c.Service)
}

func (m *namespaceMachine) logs(_ string, c Container) (string, error) {
	files, err := filepath.Glob(c.Log.Path + "*")
	if err != nil {
		return "", err
	}
	number := func(file string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".log"))
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return number(a) - number(b) })
	var out strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return out.String(), err
		}
		for line := range bytes.Lines(b) {
			var e logfile.Entry
			if json.Unmarshal(line, &e) == nil { // the last one may be half written
				out.WriteString(e.Text)
			}
		}
	}
	return out.String(), nil
}

func (m *namespaceMachine) ask(project string, r api.Request) error {
	return m.with(project, func(s *supervisor) error { _, err := s.ask(r); return err })
}

func (m *namespaceMachine) start(project string, c Container) error {
	return m.ask(project, api.Request{Op: api.OpStart, Service: c.Service})
}

func (m *namespaceMachine) stop(project string, c Container) error {
	return m.ask(project, api.Request{Op: api.OpStop, Service: c.Service})
}

func (m *namespaceMachine) remove(project string, c Container) error {
	return m.ask(project, api.Request{Op: api.OpRemove, Service: c.Service})
}

func (m *namespaceMachine) kill(project string, c Container, signal string) error {
	if !strings.HasPrefix(signal, "SIG") {
		signal = "SIG" + signal
	}
	return m.ask(project, api.Request{Op: api.OpSignal, Service: c.Service, Signal: signal})
}

// freeze stops each process; what a stopped one starts, isn't.
func (m *namespaceMachine) freeze(_ string, c Container) error { return signalAll(c, syscall.SIGSTOP) }
func (m *namespaceMachine) thaw(_ string, c Container) error   { return signalAll(c, syscall.SIGCONT) }

func signalAll(c Container, signal syscall.Signal) error {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", c.Pid))
	if err != nil {
		return err
	}
	for _, pid := range within(name) {
		if err := syscall.Kill(pid, signal); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	return nil
}

// exec goes by the worker's door, which is all that this engine has.
func (m *namespaceMachine) exec(ctx context.Context, s *Scenario, c Container, argv []string, stdout io.Writer) (int, error) {
	cmd := s.Command(ctx, append([]string{"exec", "--quiet", c.Service, "--"}, argv...)...)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if code := cmd.ProcessState.ExitCode(); code <= 1 {
		return code, nil
	}
	return cmd.ProcessState.ExitCode(), fmt.Errorf("%q: %s", argv, errs.String())
}

// early enters the worker's namespaces from outside: by then our programs have
// made them, and have not yet taken a command.
func (m *namespaceMachine) early(_ *Scenario, c Container, probes []string) ([]probe.Result, error) {
	uid := strconv.Itoa(UID)
	argv := []string{"--target", strconv.Itoa(c.Pid), "--mount", "--net", "--ipc", "--uts", "--pid", "--setgid", uid, "--setuid", uid, "--", compose.InitPath, "probe"}
	cmd := exec.Command("nsenter", append(argv, probes...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	r, err := checked(probes, out.String(), cmd.ProcessState.ExitCode(), nil)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &errs)
	}
	return r, err
}

func (m *namespaceMachine) close() {}

// session comes by the worker's door, as the engine makes it.
func (m *namespaceMachine) session(s *Scenario, worker string) (rwc io.ReadWriteCloser, err error) {
	err = m.lab.caller.as(func() error {
		e, err := namespace.New(s.Context(), namespace.Options{
			StateDir: filepath.Dir(m.dir(s.Project)), CacheDir: filepath.Join(m.lab.caller.home, ".cache/workshop"), Lookup: os.LookupEnv,
			Compared: engine.Compared{Dir: s.records()},
		})
		if err == nil {
			rwc, err = e.Session(s.Context(), s.Project, worker, "")
		}
		return err
	})
	return rwc, err
}

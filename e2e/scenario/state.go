//go:build linux

package scenario

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Containers lists the project's containers by service.
func (s *Scenario) Containers() map[string]Container {
	s.Helper()
	s.machine.uses(s)
	all, err := s.machine.list(s.Project)
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]Container{}
	for _, c := range all {
		out[c.Service] = c
	}
	return out
}

// Inspect is a service's container as it is now.
func (s *Scenario) Inspect(service string) Container {
	s.Helper()
	c, ok := s.Containers()[service]
	if !ok {
		s.Fatalf("the project has no container of %s", service)
	}
	return c
}

// View is all that the engine knows of a service's container.
func (s *Scenario) View(service string) View {
	s.Helper()
	v, err := s.machine.view(s.Project, s.Inspect(service))
	if err != nil {
		s.Fatal(err)
	}
	return v
}

// Pid is the process ID of a service's main process on this machine.
func (s *Scenario) Pid(service string) int {
	s.Helper()
	pid := s.Inspect(service).Pid
	if pid < 2 {
		s.Fatalf("%s doesn't run", service)
	}
	return pid
}

// Kill sends a signal to a service's container, as a person does by the engine.
func (s *Scenario) Kill(service, signal string) {
	s.Helper()
	s.must(s.machine.kill(s.Project, s.Inspect(service), signal))
}

// Crash kills a service's main process from outside. The engine sees it end by
// itself, and not as stopped by a person, which its restart policy tells apart.
func (s *Scenario) Crash(service string) {
	s.Helper()
	s.must(syscall.Kill(s.Pid(service), syscall.SIGKILL))
}

// Start starts a service's container by the engine's own means.
func (s *Scenario) Start(service string) error {
	s.Helper()
	return s.machine.start(s.Project, s.Inspect(service))
}

// Stop stops a service's container by the engine's own means.
func (s *Scenario) Stop(service string) {
	s.Helper()
	s.must(s.machine.stop(s.Project, s.Inspect(service)))
}

// Restart is Stop and Start, of the container alone.
func (s *Scenario) Restart(service string) error {
	s.Helper()
	s.Stop(service)
	return s.Start(service)
}

// Remove removes a service's container by the engine's own means.
func (s *Scenario) Remove(service string) {
	s.Helper()
	s.must(s.machine.remove(s.Project, s.Inspect(service)))
}

// Freeze stops every process of a service until [Scenario.Thaw].
func (s *Scenario) Freeze(service string) {
	s.Helper()
	s.must(s.machine.freeze(s.Project, s.Inspect(service)))
}

// Thaw lets a frozen service go on.
func (s *Scenario) Thaw(service string) {
	s.Helper()
	s.must(s.machine.thaw(s.Project, s.Inspect(service)))
}

func (s *Scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Logs returns what a service printed.
func (s *Scenario) Logs(service string) string {
	s.Helper()
	c, ok := s.Containers()[service]
	if !ok {
		return ""
	}
	return s.logs(c)
}

func (s *Scenario) logs(c Container) string {
	out, err := s.machine.logs(s.Project, c)
	if err != nil {
		return out + err.Error()
	}
	return out
}

// Event is one line of the guard, as a map: the test names what it needs.
type Event map[string]any

// Events are the JSON lines that the guard has printed.
func (s *Scenario) Events() []Event {
	s.Helper()
	var out []Event
	for line := range strings.Lines(s.Logs("guard")) {
		e := Event{}
		if json.Unmarshal([]byte(line), &e) == nil {
			out = append(out, e)
		}
	}
	return out
}

// Eventually asks again and again until the check is true.
func (s *Scenario) Eventually(what string, check func() bool) {
	s.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if check() {
			return
		}
	}
	s.Fatalf("never came true: %s", what)
}

// Leftovers lists what exists of the project.
func (s *Scenario) Leftovers() []string { s.Helper(); return s.machine.leftovers(s) }

// dump writes what a person needs to understand a failure.
func (s *Scenario) dump() {
	all, err := s.machine.list(s.Project)
	if err != nil {
		s.Logf("containers: %v", err)
	}
	for _, c := range all {
		logs := s.logs(c)
		if len(logs) > 4000 {
			logs = "…" + logs[len(logs)-4000:]
		}
		s.Logf("%s: %s\n%s", c.Service, c.State, logs)
	}
	if len(all) > 0 {
		s.Logf("%s", s.Run("ps").Out) // with exit codes
	}
}

// ProcStatus returns a field of /proc/PID/status of a service's main process.
func (s *Scenario) ProcStatus(service, field string) string {
	s.Helper()
	for line := range strings.Lines(s.proc(service, "status")) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == field {
			return strings.Join(strings.Fields(v), " ")
		}
	}
	return ""
}

// Args are the arguments of a service's main process.
func (s *Scenario) Args(service string) []string {
	s.Helper()
	return strings.Split(strings.TrimSuffix(s.proc(service, "cmdline"), "\x00"), "\x00")
}

func (s *Scenario) proc(service, name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Pid(service)), name))
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// NamespaceOf names a namespace of a service's main process ("net"); two with
// one name share it.
func (s *Scenario) NamespaceOf(service, kind string) string {
	s.Helper()
	name, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(s.Pid(service)), "ns", kind))
	if err != nil {
		s.Fatal(err)
	}
	return name
}

// Processes are the IDs, on this machine, of all processes of a service.
func (s *Scenario) Processes(service string) []int {
	s.Helper()
	return within(s.NamespaceOf(service, "pid"))
}

// within lists the processes of a PID namespace, but not those of namespaces
// below it.
func within(namespace string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, link := range links {
		if name, err := os.Readlink(link); err != nil || name != namespace {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil && !ended(pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// ended reports whether a process is gone, or is there only until somebody reaps it.
func ended(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, state, ok := strings.Cut(string(b), ") ")
	return err != nil || ok && (state[0] == 'Z' || state[0] == 'X')
}

// Begun waits until a command of [Scenario.Command] is workshop: as an ordinary
// user it is a shell for a moment.
func (s *Scenario) Begun(cmd *exec.Cmd) {
	s.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "exe"))
		if err != nil || exe == s.Workshop() {
			return
		}
	}
	s.Fatal("the program doesn't begin")
}

// Lives reports whether a process runs.
func Lives(pid int) bool { return !ended(pid) }

// TryKill is [Scenario.Kill] of what may be gone already.
func (s *Scenario) TryKill(service, signal string) {
	s.Helper()
	_ = s.machine.kill(s.Project, s.Inspect(service), signal)
}

// RootOf is the root directory of a service's main process, as this machine sees it.
func (s *Scenario) RootOf(service string) string {
	s.Helper()
	return filepath.Join("/proc", strconv.Itoa(s.Pid(service)), "root")
}

// Session connects to a worker's toolbox past all that a host checks; it ends
// with the connection, at the latest with the test.
func (s *Scenario) Session(worker string) io.ReadWriteCloser {
	s.Helper()
	rwc, err := s.machine.session(s, worker)
	s.must(err)
	return rwc
}

//go:build linux

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// leftovers are containers, processes, control groups, directories and mounts.
func (m *namespaceMachine) leftovers(s *Scenario) (out []string) {
	all, err := m.list(s.Project)
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range all {
		out = append(out, "container "+c.Service)
	}
	if entries, err := os.ReadDir(m.dir(s.Project)); err == nil {
		for _, e := range entries {
			out = append(out, "state "+e.Name())
		}
	}
	m.mu.Lock()
	for name := range m.seen[s.Project] {
		for _, pid := range within(name) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			out = append(out, fmt.Sprintf("process %d %s", pid, strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	m.mu.Unlock()
	for _, dir := range m.groupsOf(s.Project) {
		out = append(out, "control group "+dir)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, s.Project) {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	for _, dir := range m.runtimeDirs(s) {
		if found, _ := filepath.Glob(filepath.Join(dir, s.Project+"-*")); len(found) > 0 {
			out = append(out, "runtime "+found[0])
		}
	}
	return out
}

func (m *namespaceMachine) runtimeDirs(s *Scenario) []string {
	dirs := []string{filepath.Join(m.lab.caller.runtime(), "workshop")}
	for _, e := range s.Env {
		if v, ok := strings.CutPrefix(e, "XDG_RUNTIME_DIR="); ok {
			dirs = append(dirs, filepath.Join(v, "workshop"))
		}
	}
	return dirs
}

// groupsOf finds the project's control groups, the deepest last.
func (m *namespaceMachine) groupsOf(project string) (out []string) {
	m.mu.Lock()
	prefix := m.groups[project]
	m.mu.Unlock()
	if prefix == "" {
		prefix = project
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), filepath.Base(prefix)) {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// clean ends the supervisor by its ID, and with it all that it started.
func (m *namespaceMachine) clean(s *Scenario) {
	m.keepGroups(s.Project)
	for _, pid := range m.supervisors(s.Project) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		s.gone(pid)
	}
	m.mu.Lock()
	for _, f := range m.seen[s.Project] {
		f.Close()
	}
	delete(m.seen, s.Project)
	m.mu.Unlock()
	_ = os.RemoveAll(m.dir(s.Project))
	for _, dir := range m.groupsOf(s.Project) {
		removeGroups(dir)
	}
	removeRuntime(s, m.runtimeDirs(s)...)
}

// supervisors are the processes that are PID 1 of the outermost of the project's
// PID namespaces, or that listen on its socket.
func (m *namespaceMachine) supervisors(project string) (pids []int) {
	_ = m.with(project, func(s *supervisor) error {
		pid, err := s.process()
		if err == nil && isSupervisor(pid) {
			pids = append(pids, pid)
		}
		return nil
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.seen[project] {
		for _, pid := range within(name) {
			if isSupervisor(pid) && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// isSupervisor reports whether a process is `workshop-init supervise`.
func isSupervisor(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(line), "\x00")
	return err == nil && pid > 1 && len(args) > 1 && strings.Contains(filepath.Base(args[0]), "workshop-init") && args[1] == "supervise"
}

// Supervisor is the process ID of the project's supervisor on this machine; it
// is the namespace engine's alone.
func (s *Scenario) Supervisor() int {
	s.Helper()
	m, ok := s.machine.(*namespaceMachine)
	if !ok {
		s.Fatal("a Docker engine has no supervisor")
	}
	s.Containers() // which remembers the namespaces
	pids := m.supervisors(s.Project)
	if len(pids) != 1 {
		s.Fatalf("supervisors: %v", pids)
	}
	return pids[0]
}

// gone waits until a process that was killed is gone.
func (s *Scenario) gone(pid int) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ended(pid) {
			return
		}
	}
	s.Errorf("process %d outlives SIGKILL", pid)
}

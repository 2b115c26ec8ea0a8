package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// killed is the exit code after SIGKILL, as in shells and Docker: 128 plus the
// signal.
const killed = 137

// changed records a change of the content of state.json; mu is held.
func (s *Supervisor) changed() { s.changes++ }

// save writes state.json unless it is up to date. When it returns, changes before the
// call are written; concurrent changes are written together.
func (s *Supervisor) save() error {
	s.mu.Lock()
	want := s.changes
	s.mu.Unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.saved >= want && s.saved > 0 {
		return nil
	}
	s.mu.Lock()
	want = s.changes
	b, err := s.form()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.lockRemoved() {
		return fmt.Errorf("%s was removed", s.dir)
	}
	if err := (atomicfile.File{Name: s.dir + "/" + api.StateName, Data: b, Mode: 0o600, Volatile: s.attached}).Write(); err != nil {
		return fmt.Errorf("the state can't be written: %w", err)
	}
	s.saved = want
	return nil
}

// form returns state.json in the format of api.File; mu is held. The JSON of each
// container, some kilobytes, is cached.
func (s *Supervisor) form() ([]byte, error) {
	var dirs []string
	if s.groups != nil {
		dirs = s.groups.Dirs()
	}
	places, err := json.Marshal(dirs)
	if err != nil {
		return nil, err
	}
	limits := s.groups != nil && s.groups.Require() == nil
	b := fmt.Appendf(nil, `{"version":%d,"cgroup":%q,"cgroup_dirs":%s,"limits":%t,"containers":[`, spec.Version, s.prefix, places, limits)
	for i, name := range s.names() {
		sv := s.services[name]
		state, err := json.Marshal(&sv.state)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, "\n{\"container\":"...), sv.form...)
		b = append(append(b, ','), state[1:]...) // state is an object with fields
	}
	return append(b, "]}\n"...), nil
}

// note saves the state and only reports an error.
func (s *Supervisor) note() {
	if err := s.save(); err != nil {
		s.say("%v", err)
	}
}

// load loads the state of the previous supervisor. Nothing in it runs any more.
func (s *Supervisor) load() error {
	path := s.dir + "/" + api.StateName
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.clean(nil)
	}
	if err != nil {
		return err
	}
	f, err := readState(b)
	if err != nil {
		return fmt.Errorf("%s: %w; nothing of it runs: move the file away to start afresh", path, err)
	}
	// The location of its groups depends on who started it. If this directory is a
	// copy of another one, that one's groups are not ours.
	dirs := f.CgroupDirs
	if f.Cgroup != s.prefix {
		dirs = nil
	}
	if err := s.clean(dirs); err != nil {
		return err
	}
	for _, seen := range f.Containers {
		state := State{
			State: seen.State, ExitCode: seen.ExitCode, OOMKilled: seen.OOMKilled,
			Created: seen.Created, Started: seen.Started, Finished: seen.Finished, Restarts: seen.Restarts, Joined: seen.Joined,
		}
		if state.State == api.Running || state.State == api.Restarting {
			if state.State == api.Running {
				state.ExitCode, state.Finished = killed, now()
			}
			state.State = api.Exited
		}
		sv, err := s.newService(seen.Container, state)
		if err != nil {
			return err
		}
		s.services[seen.Container.Service] = sv
	}
	return nil
}

// clean removes groups left by the previous supervisor, in its directories and in
// ours. Usually there are none, and then nothing is touched: removing a directory of
// v1 takes tens of milliseconds.
func (s *Supervisor) clean(dirs []string) error {
	if s.groups != nil {
		dirs = append(slices.Clone(dirs), s.groups.Dirs()...)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		entries, _ := os.ReadDir(dir) // an error is reported by the cleaning
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), s.prefix) }) {
			continue
		}
		if err := cgroup.CleanStaleIn(slices.Compact(dirs), s.prefix, true); err != nil {
			return fmt.Errorf("groups of the previous supervisor: %w", err)
		}
		return nil
	}
	return nil
}

// readState reads state.json strictly.
func readState(b []byte) (*api.File, error) {
	var f api.File
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	if f.Version != spec.Version {
		return nil, fmt.Errorf("state format %d, want %d", f.Version, spec.Version)
	}
	seen := map[string]bool{}
	for i := range f.Containers {
		c := &f.Containers[i]
		if err := check(&c.Container); err != nil {
			return nil, err
		}
		if seen[c.Container.Service] {
			return nil, fmt.Errorf("duplicate service %q", c.Container.Service)
		}
		seen[c.Container.Service] = true
		switch c.State {
		case api.Created, api.Running, api.Restarting, api.Exited:
		default:
			return nil, fmt.Errorf("service %q has the unknown state %q", c.Container.Service, c.State)
		}
	}
	return &f, nil
}

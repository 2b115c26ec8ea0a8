package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// running is the state of a running worker, named as by other engines.
const running = "running"

// stateName is the file of a project, workersName the directory with the
// descriptions of its workers, ownName the one with their directories, and
// volumesName that of the copies.
const (
	stateName   = "state.json"
	workersName = "workers"
	ownName     = "own"
	volumesName = "volumes"
)

// state is the recorded state of a project.
type state struct {
	Containers []engine.Container `json:"containers,omitempty"`
	Volumes    []engine.Object    `json:"volumes,omitempty"`
}

func (e *Engine) dir(project string) (string, error) {
	if !validName(project) {
		return "", fmt.Errorf("%q is not valid as a project name", project)
	}
	return filepath.Join(e.opts.StateDir, project), nil
}

// data returns the directory with the sessions' own directories of a project.
func (e *Engine) data(project string) (string, error) {
	if _, err := e.dir(project); err != nil {
		return "", err
	}
	return filepath.Join(e.opts.DataDir, project), nil
}

func (e *Engine) read(project string) (*state, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.readLocked(project)
}

func (e *Engine) readLocked(project string) (*state, error) {
	dir, err := e.dir(project)
	if err != nil {
		return nil, err
	}
	s := &state{}
	file := filepath.Join(dir, stateName)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w: remove %s, then `workshop up`", file, err, dir)
	}
	return s, nil
}

// change changes the state; steps may run concurrently. With the last worker and
// copy the state is removed.
func (e *Engine) change(project string, f func(*state) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.readLocked(project)
	if err != nil {
		return err
	}
	if err := f(s); err != nil {
		return err
	}
	dir, err := e.dir(project)
	if err != nil {
		return err
	}
	if len(s.Containers)+len(s.Volumes) == 0 {
		return errors.Join(rmtree.Remove(dir), rmtree.Remove(filepath.Join(e.opts.DataDir, project)))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, stateName), s)
}

// writeJSON writes a file atomically.
func writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(name, b, 0o600)
}

func (s *state) without(id string) {
	s.Containers = slices.DeleteFunc(s.Containers, func(c engine.Container) bool { return c.ID == id })
}

func (s *state) byID(id string) *engine.Container {
	for i := range s.Containers {
		if s.Containers[i].ID == id {
			return &s.Containers[i]
		}
	}
	return nil
}

func (s *state) byService(service string) *engine.Container {
	for i := range s.Containers {
		if s.Containers[i].Service == service {
			return &s.Containers[i]
		}
	}
	return nil
}

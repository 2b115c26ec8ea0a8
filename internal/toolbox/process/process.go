// Package process says what a session of process mode is given: there is no
// container whose mounts and main process would say it. An engine writes it, and
// `workshop-init tools --process` reads it. It is pure data.
package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/llmdo/workshop/tool"
)

// Version of the form. Programs of different versions refuse each other.
const Version = 1

// Descriptors that a session is started with, besides its connection (0 and 1).
const (
	SpecFD    = 3 // a file with the Spec, which is read from its beginning
	ProgramFD = 4 // workshop-init
	MountFD   = 5 // the source of the first mount (O_PATH); those of the others follow
)

// maxSpec bounds a Spec as JSON, in bytes.
const maxSpec = 8 << 20

// Spec is one worker.
type Spec struct {
	Version int        `json:"version"`
	Grant   tool.Grant `json:"grant"`
	// Instance names this run of the worker: another one after a restart.
	Instance string `json:"instance"`
	// Up is a file that is there as long as the worker is up; the session ends
	// when it is removed.
	Up string `json:"up"`
	// Env is the whole environment, KEY=VALUE; paths in it are this machine's.
	Env     []string `json:"env"`
	Workdir string   `json:"workdir"` // as the worker has it
	// Mounts are what the worker has of this machine. One has the target "/".
	// Their sources come as descriptors: as with a container, its user need not
	// reach them by their paths.
	Mounts []Mount `json:"mounts"`
	// System are paths of this machine that programs need: they can be read and
	// executed. Devices can be read and written.
	System  []string `json:"system"`
	Devices []string `json:"devices"`
	// Landlock fences the session. Without it only the file tools are bound to
	// the mounts, and a program reaches what the user reaches.
	Landlock bool `json:"landlock"`
	// Policy is the firewall's with the worker's room alone; empty: fetch_url
	// reaches nothing.
	Policy json.RawMessage `json:"policy,omitempty"`
}

// Mount is a file or directory of this machine that the worker has.
type Mount struct {
	Target   string `json:"target"` // absolute in the worker
	Source   string `json:"source"` // absolute here, without symbolic links
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Read reads a Spec. Of another version it says so before anything else.
func Read(r io.Reader) (*Spec, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxSpec+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSpec {
		return nil, fmt.Errorf("what the session is given takes more than %d bytes", maxSpec)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("what the session is given can't be read: %w", err)
	}
	if v.Version != Version {
		return nil, fmt.Errorf("the worker is of version %d, and this program of %d: run `workshop up`", v.Version, Version)
	}
	var s Spec
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("what the session is given can't be read: %w", err)
	}
	if d.More() {
		return nil, errors.New("trailing data after what the session is given")
	}
	return &s, nil
}

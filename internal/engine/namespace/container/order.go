package container

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// order is the message of Start to the stage: one JSON object, until EOF of the
// pipe.
type order struct {
	Container *spec.Container `json:"container"`
	Cgroup    []CgroupMount   `json:"cgroup,omitempty"`
	// Null are the descriptors below 3 that become the container's own /dev/null:
	// through the machine's, its root could change that file.
	Null []int `json:"null,omitempty"`
}

// CgroupMount is a read-only mount of a control group file system, by which the
// container sees its own group. It is converted from package cgroup's type.
type CgroupMount struct {
	Type    string // cgroup2, cgroup, or the tmpfs that holds those
	Options string // of the file system, joined by commas
	Target  string // /sys/fs/cgroup or below
}

// maxOrder bounds an order: a filter and some small files.
const maxOrder = 4 << 20

func readOrder(r io.Reader) (*order, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxOrder+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxOrder {
		return nil, fmt.Errorf("the order is longer than %d bytes", maxOrder)
	}
	return parseOrder(b)
}

func parseOrder(b []byte) (*order, error) {
	var o order
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("the order can't be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the order can't be read: trailing data")
	}
	if err := Check(o.Container); err != nil {
		return nil, err
	}
	for _, m := range o.Cgroup {
		if !clean(m.Target) || !subpath.Within(m.Target, cgroupDir) {
			return nil, fmt.Errorf("a control group at %q is not below %s", m.Target, cgroupDir)
		}
		if m.Type != "cgroup2" && m.Type != "cgroup" && m.Type != "tmpfs" {
			return nil, fmt.Errorf("%q is not a control group file system", m.Type)
		}
	}
	for _, fd := range o.Null {
		if fd < 0 || fd > 2 {
			return nil, fmt.Errorf("the descriptor %d can't be /dev/null", fd)
		}
	}
	return &o, nil
}

const cgroupDir = "/sys/fs/cgroup"

package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Scope is a scope for one process, and for what it starts.
type Scope struct {
	Name        string // with .scope; a unit of that name must not exist
	Description string
	PID         int // as this process sees it; it must be the caller's
}

// property is (sv) of StartTransientUnit.
type property struct {
	Name  string
	Value dbus.Variant
}

// properties are those of systemd-run --scope -p Delegate=yes, and the unit is
// forgotten at its end, also after a failure.
func (s Scope) properties() []property {
	return []property{
		{"Description", dbus.MakeVariant(s.Description)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(s.PID)})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
}

// StartScope starts a scope and returns when its process is in it.
func (m *Manager) StartScope(ctx context.Context, s Scope) error {
	type aux struct {
		Name       string
		Properties []property
	}
	var job dbus.ObjectPath
	call := m.object.CallWithContext(ctx, managerName+".StartTransientUnit", 0, s.Name, "fail", s.properties(), []aux{})
	if err := call.Store(&job); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	// What counts is where the process is, not what is said of the job. It is moved by
	// the machine's systemd, as a session's group is root's.
	for {
		in, err := inScope(s.PID, s.Name)
		if err != nil || in {
			return err
		}
		var unit dbus.ObjectPath
		err = m.object.CallWithContext(ctx, managerName+".GetUnit", 0, s.Name).Store(&unit)
		if gone, ok := errors.AsType[dbus.Error](err); ok && gone.Name == "org.freedesktop.systemd1.NoSuchUnit" {
			if in, err := inScope(s.PID, s.Name); err != nil || in {
				return err
			}
			return fmt.Errorf("start %s: systemd couldn't move the process into it", s.Name)
		} else if err != nil {
			return fmt.Errorf("start %s: %w", s.Name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", s.Name, context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// inScope reports whether a process's group of version 2 is the scope's.
func inScope(pid int, name string) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(b)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && strings.HasSuffix(group, "/"+name) {
			return true, nil
		}
	}
	return false, nil
}

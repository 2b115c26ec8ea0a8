package compose

import (
	"path"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/tool"
)

// DialInDir is where a worker has its door: the directory through which the host
// reaches the worker's PID 1 (package internal/toolbox/dialin).
const DialInDir = tool.DialInDir

// dialInPath is the directory of a worker's door on this machine; "" where there
// is none. Sessions then go through the engine.
func dialInPath(f *Facts, service string) string {
	if !f.Local || f.RuntimeDir == "" {
		return ""
	}
	return path.Join(f.RuntimeDir, "door-"+service)
}

// DialInPath is the directory of a worker's door on this machine; "" where there is none.
func DialInPath(f Facts, worker string) string { return dialInPath(&f, worker) }

// DialInPaths lists the directories of the doors of a project's workers, sorted.
func DialInPaths(c *Compiled, f Facts) []string {
	var dirs []string
	for _, name := range sortedKeys(c.Roles) {
		if dir := dialInPath(&f, name); dir != "" && c.hasDoor(name, &f) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// hasDoor reports whether a service is a worker whose PID 1 is on this machine's kernel:
// another one can't open a socket that the host makes. That of a virtual machine runs it.
func (c *Compiled) hasDoor(service string, f *Facts) bool {
	w := c.definition(service)
	return c.Roles[service] == RoleWorker && (w == nil || !w.Container.Kernel.V.Own() || f.Kernels[w.Container.Kernel.V].Mechanism == MechanismVM)
}

// dialInMount binds a worker's door: read-only, so that nothing in the worker can
// stand in for the host.
func dialInMount(service string, f *Facts) []types.ServiceVolumeConfig {
	dir := dialInPath(f, service)
	if dir == "" {
		return nil
	}
	return []types.ServiceVolumeConfig{bind(dir, DialInDir, true)}
}

package compose

import (
	"path"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/tool"
)

// DoorDir is where a worker has its door: the directory through which the host
// reaches the worker's PID 1 (package internal/toolbox/dialin).
const DoorDir = tool.DoorDir

// DoorPath is the directory of a worker's door on this machine; "" where there
// is none. Sessions then go through the engine.
func DoorPath(f *Facts, service string) string {
	if !f.Local || f.RuntimeDir == "" {
		return ""
	}
	return path.Join(f.RuntimeDir, "door-"+service)
}

// Doors lists the directories of the doors of a project's workers, sorted.
func Doors(c *Compiled, f Facts) []string {
	var dirs []string
	for _, name := range sortedKeys(c.Roles) {
		if dir := DoorPath(&f, name); dir != "" && c.Roles[name] == RoleWorker {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// doorMount binds a worker's door: read-only, so that nothing in the worker can
// stand in for the host.
func doorMount(service string, f *Facts) []types.ServiceVolumeConfig {
	dir := DoorPath(f, service)
	if dir == "" {
		return nil
	}
	return []types.ServiceVolumeConfig{bind(dir, DoorDir, true)}
}

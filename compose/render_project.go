package compose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// renderProject writes compose.yaml. There is no top-level name and no key
// that docker-compose 1.29 refuses; binds are written without their options, which
// 1.29 does not know (it refuses missing sources anyway, and mounts below a
// source were refused by WithFacts).
func renderProject(c *Compiled) []byte {
	e := &emitter{b: make([]byte, 0, 3<<10*(1+len(c.Project.Services))), origins: c.Origins}
	e.header(c)
	e.raw(0, "services:")
	for _, name := range orderedServices(c) {
		e.b = append(e.b, '\n')
		s := c.Project.Services[name]
		e.service(c, &s)
	}
	if len(c.Project.Networks) > 0 {
		e.raw(0, "\nnetworks:")
		for _, name := range sortedKeys(c.Project.Networks) {
			e.raw(2, "# the guard's own; no worker is on it")
			e.raw(2, name+":")
			e.raw(4, "driver: "+c.Project.Networks[name].Driver)
		}
	}
	e.within("volumes.")
	e.raw(0, "\nvolumes:")
	for _, name := range sortedKeys(c.Project.Volumes) {
		e.volume(name, c.Project.Volumes[name])
	}
	return e.b
}

func (e *emitter) header(c *Compiled) {
	e.raw(0, "# Made by `workshop compile` from "+cleanComment(baseName(c.workshop.File))+"; changes here are lost.")
	e.raw(0, "# With plain Compose, in this directory, after `workshop compile --load`:")
	e.raw(0, "#   docker compose --env-file "+FactsEnv+" -f "+ComposeFile+" -f "+FactsFile+" -p "+c.workshop.Name.V+" up")
	e.b = append(e.b, '\n')
}

func baseName(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

func (e *emitter) volume(name string, v types.VolumeConfig) {
	switch {
	case name == ToolsVolume:
		e.raw(2, "# workshop-init, the gate of every worker")
	case name == SocketsVolume:
		e.raw(2, "# between rooms and guard; never in a worker")
	case strings.HasPrefix(name, "cache-"):
		e.raw(2, "# a cache of one worker; its name has what the worker is granted")
	case strings.HasPrefix(name, "copy-"):
		e.raw(2, "# a read-only copy of a mount with exclude or copy")
	}
	if !v.External {
		e.raw(2, name+": {}")
		return
	}
	e.raw(2, name+":")
	e.raw(4, "external: true")
	e.value(4, "name", name+".name", v.Name)
}

// orderedServices lists guard, rooms, then workers in the order of the file.
func orderedServices(c *Compiled) []string {
	order := make(map[string]int, len(c.Project.Services))
	for i := range c.workshop.Workers {
		order[c.workshop.Workers[i].Name] = i
	}
	names := sortedKeys(c.Project.Services)
	sortfunc.Stable(names, func(a, b string) int {
		return cmp.Or(-cmp.Compare(c.Roles[a], c.Roles[b]), cmp.Compare(order[a], order[b]))
	})
	return names
}

func sortedKeys[M ~map[string]V, V any](m M) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

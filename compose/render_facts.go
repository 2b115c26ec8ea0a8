package compose

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// secondFileMissing is the name of a volume that does not exist: what plain
// Compose says when it has the variables but not the second file.
const secondFileMissing = "add-the-second-file--f-run-compose.facts.yaml"

// RenderFacts writes run/: what the machine adds, for plain Compose. It is
// never committed. The second file replaces the name of the tool volume, so
// that the first one alone can't start.
func RenderFacts(c *Compiled) ([]File, error) {
	if c.Facts == nil {
		return nil, errors.New("render facts: the project has no facts")
	}
	if why := NoPlainCompose(c); why != "" {
		return nil, errors.New("render facts: " + why)
	}
	f := c.Facts
	e := &emitter{}
	e.raw(0, "# What this machine adds to "+ComposeFile+"; made by `workshop compile --load`, never committed.")
	e.raw(0, "services:")
	for _, name := range orderedServices(c) {
		e.addition(name, c.added[name], f)
	}
	if len(c.Project.Networks) > 0 {
		e.raw(0, "networks:")
	}
	for _, name := range sortedKeys(c.Project.Networks) {
		n := c.Project.Networks[name]
		e.raw(2, name+":")
		e.raw(4, "driver: "+n.Driver) // docker-compose 1.29 takes the last file's, whole
		e.labels(n.Labels)
	}
	e.raw(0, "volumes:")
	for _, name := range sortedKeys(c.Project.Volumes) {
		if v := c.Project.Volumes[name]; !v.External && name != PolicyVolume {
			e.raw(2, name+":")
			if v.Name != "" { // of a cache
				e.value(4, "name", "", v.Name)
			}
			e.labels(v.Labels)
		}
	}
	e.raw(2, ToolsVolume+":")
	e.raw(4, "external: true")
	e.value(4, "name", "", f.InitVolume)

	files := []File{
		{Path: FactsFile, Data: e.b, Mode: 0o600},
		{Path: FactsEnv, Mode: 0o600, Data: []byte(VarFacts + "=" + secondFileMissing + "\n" +
			VarInitImage + "=" + f.InitImage + "\n")},
	}
	if f.Local {
		for _, id := range IdentityFiles(c, *f) {
			id.Path = path.Join(runDir, id.Path)
			files = append(files, id)
		}
	}
	return files, nil
}

// addition writes what is added to one service. passwd and group are next to
// the file; all other sources are this machine's. The door is left out: its
// directory goes with a restart of the machine, and Compose would refuse to
// start without; sessions of such a worker go through the engine.
func (e *emitter) addition(service string, a *addition, f *Facts) {
	e.raw(2, service+":")
	if a.user != "" {
		e.value(4, "user", "", a.user)
	}
	if a.runtime != "" {
		e.value(4, "runtime", "", a.runtime)
	}
	if len(a.tmpfs) > 0 {
		e.raw(4, "tmpfs:") // of two for one directory, every Compose takes the last
	}
	for _, t := range a.tmpfs {
		e.item(6, "", t)
	}
	e.labels(a.labels)
	if len(a.sysctls) > 0 {
		e.raw(4, "sysctls:")
		for _, k := range sortedKeys(a.sysctls) {
			e.value(6, k, "", a.sysctls[k])
		}
	}
	if len(a.env) > 0 {
		e.raw(4, "environment:")
		for _, k := range sortedKeys(a.env) {
			e.value(6, k, "", a.env[k])
		}
	}
	volumes := slices.DeleteFunc(slices.Clone(a.volumes), func(v types.ServiceVolumeConfig) bool { return v.Target == DialInDir })
	if len(volumes) > 0 {
		e.raw(4, "volumes:")
	}
	for _, v := range volumes {
		if isIdentity(&v, f) {
			v.Source = "./" + runDir + "/" + path.Base(v.Source)
		}
		e.mount(&v)
	}
}

func (e *emitter) labels(labels types.Labels) {
	e.raw(4, "labels:")
	for _, k := range sortedKeys(labels) {
		e.value(6, k, "", labels[k])
	}
}

// isIdentity reports whether a mount is one of the identity files.
func isIdentity(v *types.ServiceVolumeConfig, f *Facts) bool {
	dir, file := path.Split(v.Source)
	if path.Clean(dir) != path.Clean(f.RuntimeDir) {
		return false
	}
	switch v.Target {
	case "/etc/passwd":
		return strings.HasPrefix(file, passwdFile)
	case "/etc/group":
		return strings.HasPrefix(file, groupFile)
	}
	return path.Base(v.Target) == backFile && strings.HasPrefix(file, backFile+"-")
}

package engine

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// Environment returns a service's variables as KEY=VALUE, sorted. One without a
// value is an error: it would be taken from this machine.
func Environment(vars types.MappingWithEquals) ([]string, error) {
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if vars[name] == nil {
			return nil, fmt.Errorf("environment variable %s has no value", name)
		}
		env = append(env, name+"="+*vars[name])
	}
	return env, nil
}

// ContainerLabels returns the labels of a service's container: Compose's, ours, and
// the project's.
func ContainerLabels(d Desired, service string) map[string]string {
	c := d.Compiled
	s := c.Project.Services[service]
	out := map[string]string{}
	maps.Copy(out, s.Labels)
	maps.Copy(out, s.CustomLabels)
	delete(out, compose.LabelPolicy) // a reload would make it stale
	hash := ConfigHash(d, service)
	dependsOn := make([]string, 0, len(s.DependsOn))
	for _, dep := range slices.Sorted(maps.Keys(s.DependsOn)) {
		dependsOn = append(dependsOn, dep+":"+s.DependsOn[dep].Condition+":"+strconv.FormatBool(s.DependsOn[dep].Restart))
	}
	maps.Copy(out, ObjectLabels(c))
	maps.Copy(out, map[string]string{
		LabelService:            service,
		LabelComposeHash:        hash,
		compose.LabelConfigHash: hash,
		LabelNumber:             "1",
		LabelOneOff:             "False",
		LabelDependsOn:          strings.Join(dependsOn, ","),
		LabelImage:              ImageRef(d, service),
	})
	if f := c.Facts; f != nil && f.ProjectDir != "" {
		dir := f.ProjectDir + "/.workshop/" + c.Project.Name
		out[LabelWorkingDir] = dir
		out[LabelConfigFiles] = dir + "/compose.yaml," + dir + "/run/compose.facts.yaml"
	}
	return out
}

// ObjectLabels returns the labels of every object of the project.
func ObjectLabels(c *compose.Compiled) map[string]string {
	out := map[string]string{
		LabelProject: c.Project.Name,
		// A version of Compose that uses these labels.
		LabelVersion: "2.40.3",
	}
	if c.Facts != nil && c.Facts.ProjectDir != "" {
		out[compose.LabelDirectory] = c.Facts.ProjectDir
	}
	return out
}

// NetworkLabels returns the labels of a network of the project.
func NetworkLabels(c *compose.Compiled, key string) map[string]string {
	n := c.Project.Networks[key]
	out := ObjectLabels(c)
	maps.Copy(out, n.Labels)
	maps.Copy(out, n.CustomLabels)
	out[LabelNetwork] = key
	out[compose.LabelConfigHash] = NetworkHash(c.Project, key)
	return out
}

// VolumeLabels returns the labels of a volume of the project.
func VolumeLabels(c *compose.Compiled, key string) map[string]string {
	v := c.Project.Volumes[key]
	out := ObjectLabels(c)
	maps.Copy(out, v.Labels)
	maps.Copy(out, v.CustomLabels)
	out[LabelVolume] = key
	if cp, ok := c.Copies[key]; ok {
		out[compose.LabelConfigHash] = CopyHash(cp)
		out[compose.LabelContent] = cp.Digest
	}
	return out
}

// HostPath returns the absolute path of a source of the project; relative ones are
// relative to the generated directory.
func HostPath(c *compose.Compiled, source string) string {
	if f := c.Facts; f != nil && f.ProjectDir != "" && !filepath.IsAbs(source) {
		return filepath.Join(f.ProjectDir, ".workshop", c.Project.Name, source)
	}
	return source
}

package engine

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// Other is an object that has the project's name and doesn't belong to a workshop:
// it was created from a docker-compose.yml of the same name, or by hand. It is never
// touched.
type Other struct {
	Object    string // "volume/web_pgdata"
	Directory string // of its Compose project; empty if no label names one
}

// OurContainer reports whether a container with these labels belongs to a workshop:
// created by an engine, or by a Compose program from the rendered files.
//
// Compose's project label is not enough: any docker-compose.yml sets it. Nor is our
// own label: containers inherit it from an image. But the creator of a container
// sets Compose's working directory, which is .workshop/<name>, or none for a helper.
func OurContainer(labels map[string]string) bool {
	dir := labels[LabelWorkingDir]
	switch {
	case labels[compose.LabelDirectory] == "":
		return false
	case IsHelper(labels):
		return dir == ""
	}
	return filepath.Base(filepath.Dir(dir)) == ".workshop"
}

// IsHelper reports whether a container is a helper by which volumes are filled. It
// has no service; a service's container may have the label from its image.
func IsHelper(labels map[string]string) bool {
	return labels[LabelHelper] != "" && labels[LabelService] == ""
}

// MadeByEngine returns the configuration hash of a container created by an engine,
// and "" for one created by a Compose program, where Compose's own hash differs from
// ours.
func MadeByEngine(labels map[string]string) string {
	if hash := labels[compose.LabelConfigHash]; hash == labels[LabelComposeHash] {
		return hash
	}
	return ""
}

// OfProject reports whether a network or volume was made for this project of this
// directory.
func OfProject(labels map[string]string, c *compose.Compiled) bool {
	want := ObjectLabels(c)
	return labels[LabelProject] == want[LabelProject] && labels[compose.LabelDirectory] == want[compose.LabelDirectory]
}

// Sift moves caches to Caches, and networks and volumes that don't belong to a
// workshop to Others.
// Containers are sifted before.
func (o *Observed) Sift() {
	o.siftCaches()
	// Files rendered by an older version set no label of ours on these. They are
	// ours if our containers exist, and no others can have them.
	alone := len(o.Others) == 0
	used := func(by func(Container) []string, what, key string, n Object) bool {
		return alone && n.Name == o.Project+"_"+key && slices.ContainsFunc(o.Containers, func(c Container) bool {
			return c.ByCompose && slices.Contains(by(c), what)
		})
	}
	o.Networks = o.keep("network/", o.Networks, func(n Object) bool {
		key := n.Labels[LabelNetwork]
		return key == "default" && used(func(c Container) []string { return c.NetworkIDs }, n.ID, key, n)
	})
	o.Volumes = o.keep("volume/", o.Volumes, func(v Object) bool {
		key := v.Labels[LabelVolume]
		return (key == compose.SocketsVolume || strings.HasPrefix(key, "copy-")) &&
			used(func(c Container) []string { return c.Volumes }, v.Name, key, v)
	})
}

func (o *Observed) keep(kind string, all []Object, used func(Object) bool) (kept []Object) {
	for _, n := range all {
		if n.Labels[compose.LabelDirectory] != "" || used(n) {
			kept = append(kept, n)
		} else {
			o.Others = append(o.Others, Other{Object: kind + n.Name})
		}
	}
	return kept
}

package engine

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
)

// Other is an object that carries the project's name and is no workshop's: a
// docker-compose.yml of the same name made it, or somebody by hand. It is never
// touched.
type Other struct {
	Object    string // "volume/web_pgdata"
	Directory string // of its Compose project; empty where no label names one
}

// OurContainer tells by its labels whether a container is a workshop's: made by
// an engine, or by a Compose program from the rendered files.
//
// Compose's label of the project tells nothing: any docker-compose.yml gives it.
// Nor does a label of ours alone: an image can have it, and its containers
// inherit it. But what makes a container sets Compose's working directory, which
// is .workshop/<name>, or, for a helper, gives none.
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

// IsHelper reports whether a container is one through which volumes are filled. It
// is of no service; one that is may have the label from its image.
func IsHelper(labels map[string]string) bool {
	return labels[LabelHelper] != "" && labels[LabelService] == ""
}

// MadeByEngine gives the configuration hash of a container that an engine made,
// and "" for one that a Compose program made: there, Compose's own hash is another
// one, wherever ours comes from.
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

// Sift moves the networks and volumes that are no workshop's to Others. The
// containers are sifted before.
func (o *Observed) Sift() {
	// Files that an older version rendered gave these no label of ours. They are
	// ours if our containers have them, and nobody else's can.
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

package workshop

import (
	"fmt"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/image/reference"
)

// imageOfIsolation refuses an image that a path of B7 holds, or that the kind of
// engine in the file can't give: nothing in Linux namespaces runs a Dockerfile, and a Docker engine reads
// its own store alone. With auto it depends on the machine, so `up` says it.
func (d *decoder) imageOfIsolation(isolation Value[Isolation], c *partialContainer) {
	if c == nil {
		return
	}
	refuse := func(at diag.Range, what, hint string) {
		d.add(diag.Diagnostic{
			Severity: diag.Error, Code: "image-of-other-engine", Summary: fmt.Sprintf("isolation: %s %s", isolation.V, what),
			Hint: hint, Range: at, Related: []diag.Related{{Message: "isolation is here", Range: isolation.Source.Range}},
		})
	}
	var image reference.Ref
	if c.Image != nil {
		if r, err := reference.Parse(c.Image.V); err == nil && r.OnMachine() {
			image = r
			d.checkSource(&Value[string]{V: r.Path, Source: c.Image.Source}, imageUse)
		}
	}
	switch {
	case isolation.V == IsolationNamespace && c.Build != nil:
		refuse(c.Keys["build"], "builds no images", "write isolation: docker, or image: with what was built elsewhere (a reference, oci:DIR, docker-archive:FILE)")
	case isolation.V == IsolationDocker && image.OnMachine():
		refuse(c.Image.Source.Range, "reads no images from files", "write isolation: namespace, or load the image into the engine and write its NAME:TAG")
	}
}

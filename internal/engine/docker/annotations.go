package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/engine"
)

// podmansAnnotations are those that podman itself gives a container (podman:
// libpod/define/annotations.go; pkg/annotations), and describing are the beginnings of those
// that say something of an image to people.
var (
	podmansAnnotations = []string{"io.container.manager", "io.kubernetes.cri-o.Created", "io.kubernetes.cri-o.TTY"}
	describing         = []string{"io.podman.annotations.", "org.opencontainers.image.", "com.docker.official-images."}
)

// withoutAnnotations is how an image is made without annotations, which Docker's archives
// don't have.
const withoutAnnotations = "podman takes annotations from containers.conf or the image, and its runtime obeys them: make the image one without, `podman save --format docker-archive %s | podman load`"

// commands returns, sorted, the annotations that a runtime or a hook may obey: crun's replace
// the seccomp filter, name its handler and sockets of the machine (crun(1), "Extensions to
// OCI"), others are properties for systemd. What isn't known to be harmless is one.
func commands(annotations map[string]string) (out []string) {
	for _, name := range sortedKeys(annotations) {
		begins := func(p string) bool { return strings.HasPrefix(name, p) }
		if !slices.Contains(podmansAnnotations, name) && !slices.ContainsFunc(describing, begins) {
			out = append(out, name)
		}
	}
	return out
}

// annotated returns the difference that a container's annotations are; nil: there is none.
// They are the image's and those of containers.conf, so that one container of each image is
// asked for: an inspection takes podman milliseconds.
func (r *run) annotated(ctx context.Context, id, image string) (*engine.Difference, error) {
	one, _ := r.annotations.LoadOrStore(image, sync.OnceValues(func() (*engine.Difference, error) { return r.e.annotationsOf(ctx, id) }))
	return one.(func() (*engine.Difference, error))()
}

// annotationsOf asks podman's own API, which alone shows them.
func (e *Engine) annotationsOf(ctx context.Context, id string) (*engine.Difference, error) {
	var c struct {
		Config struct{ Annotations map[string]string }
	}
	if err := e.libpodGet(ctx, "/containers/"+id+"/json", &c); err != nil {
		return nil, fmt.Errorf("annotations: %w", err)
	}
	if found := commands(c.Config.Annotations); len(found) > 0 {
		return &engine.Difference{Promise: "B2", Field: "Annotations", Found: strings.Join(found, ", ")}, nil
	}
	return nil, nil
}

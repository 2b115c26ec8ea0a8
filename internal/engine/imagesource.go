package engine

import (
	"fmt"

	"github.com/llmdo/workshop/internal/image/reference"
)

// ImageSourceError means that an engine can't read images from directories or
// files of this machine (oci:DIR, docker-archive:FILE). It is a refusal: nothing
// was started.
type ImageSourceError struct {
	Image  string // as workshop.yaml names it
	Engine string // "docker"
}

// Error says what to do.
func (e *ImageSourceError) Error() string {
	load := "load it with `docker load`"
	if r, err := reference.Parse(e.Image); err == nil && r.Kind == reference.Layout {
		load = fmt.Sprintf("load it with `skopeo copy %s docker-daemon:NAME:TAG`", e.Image)
	} else if err == nil && r.Kind == reference.Archive {
		load = "load it with `docker load -i " + r.Path + "`"
	}
	return fmt.Sprintf("image %s: the %s engine can't read images from files: set `isolation: namespace`, or %s and use its name", e.Image, e.Engine, load)
}

// ExitCode is 4: refused.
func (e *ImageSourceError) ExitCode() int { return 4 }

// RefuseImageFiles returns an [ImageSourceError] for the first reference to a
// directory or file. It is for engines with their own image store.
func RefuseImageFiles(engine string, images ...string) error {
	for _, image := range images {
		if r, err := reference.Parse(image); err == nil && r.OnMachine() {
			return &ImageSourceError{Image: reference.WithoutContent(image), Engine: engine}
		}
	}
	return nil
}

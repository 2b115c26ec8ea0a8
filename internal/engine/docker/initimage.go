package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"
)

// InitNames returns the names of the workshop-init image and the tool volume for
// this engine's architecture. They are derived from the embedded program; of the
// engine only the architecture is needed.
func (e *Engine) InitNames(ctx context.Context) (image, volume string, err error) {
	arch, err := e.arch(ctx)
	if err != nil {
		return "", "", err
	}
	n, err := e.init.Names(arch)
	if err != nil {
		return "", "", err
	}
	return n.ImageID, n.Volume(), nil
}

// PrepareInit loads the image and fills the tool volume, for `compile --load`, and
// returns their names.
func (e *Engine) PrepareInit(ctx context.Context) (image, volume string, err error) {
	if _, volume, err = e.InitNames(ctx); err != nil {
		return "", "", err
	}
	defer e.settle()
	id, err := e.loadInit(ctx)
	if err != nil {
		return "", "", err
	}
	return id, volume, e.fillTools(ctx, volume, nil)
}

// isInit reports whether a reference is that of the workshop-init image; it is
// always false if this build has none.
func (e *Engine) isInit(ctx context.Context, ref string) bool {
	if !strings.HasPrefix(ref, "sha256:") {
		return false
	}
	arch, err := e.arch(ctx)
	if err != nil {
		return false
	}
	n, err := e.init.Names(arch)
	return err == nil && (ref == n.ImageID || ref == n.ManifestID)
}

// findInit returns the engine's ID of the image, "" if it doesn't exist. It looks
// for both IDs that the content can have, never for the name alone.
func (e *Engine) findInit(ctx context.Context) (string, error) {
	arch, err := e.arch(ctx)
	if err != nil {
		return "", err
	}
	n, err := e.init.Names(arch)
	if err != nil {
		return "", err
	}
	for _, ref := range []string{n.ImageID, n.ManifestID} {
		found, err := e.cli.ImageInspect(ctx, ref)
		switch {
		case cerrdefs.IsNotFound(err):
			continue
		case err != nil:
			return "", e.explain(err)
		case found.ID == n.ImageID || found.ID == n.ManifestID:
			return found.ID, nil
		}
	}
	return "", nil
}

// loadInit loads the image if the engine does not have it.
func (e *Engine) loadInit(ctx context.Context) (string, error) {
	if id, err := e.findInit(ctx); err != nil || id != "" {
		return id, err
	}
	arch, err := e.arch(ctx)
	if err != nil {
		return "", err
	}
	img, err := e.init.Image(arch)
	if err != nil {
		return "", err
	}
	resp, err := e.cli.ImageLoad(ctx, bytes.NewReader(img.Tar), client.ImageLoadWithQuiet(true))
	if err != nil {
		return "", fmt.Errorf("load the workshop-init image: %w", e.explain(err))
	}
	failed := messages(resp.Body, func(*jsonmessage.JSONMessage) {})
	resp.Body.Close()
	id, err := e.findInit(ctx)
	if err == nil && id == "" {
		if failed == nil {
			failed = errors.New("the engine doesn't have it afterwards")
		}
		err = fmt.Errorf("load the workshop-init image: %w", failed)
	}
	return id, err
}

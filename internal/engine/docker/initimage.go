package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
)

// InitNames gives the names that Facts carry: the workshop-init image and the
// tool volume for this engine's architecture. They follow from the embedded
// program; the engine is asked for nothing but its architecture.
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

// PrepareInit makes image and tool volume ready, as `compile --load` needs
// them, and returns their names.
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

// isInit reports whether a reference means the workshop-init image; never, if
// this build has none.
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

// findInit returns the engine's ID of the image, "" if it is not there. It is
// looked for by both IDs that its content can have, never by its name alone.
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
	out, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if err != nil {
		return "", fmt.Errorf("load the workshop-init image: %w", err)
	}
	id, err := e.findInit(ctx)
	if err == nil && id == "" {
		err = fmt.Errorf("load the workshop-init image: the engine does not have it afterwards: %s", strings.TrimSpace(string(out)))
	}
	return id, err
}

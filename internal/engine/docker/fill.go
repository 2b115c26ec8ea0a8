package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
)

// fillDir is the mount point of the filled volume in a helper.
const fillDir = "/workspace"

// fill writes the policy or a read-only copy into a volume of the project.
func (e *Engine) fill(ctx context.Context, c *compose.Compiled, key string) error {
	pr, pw := io.Pipe()
	go func() {
		w := tar.NewWriter(pw)
		err := copytree.Volume(w, c, key)
		pw.CloseWithError(errors.Join(err, w.Close()))
	}()
	// Ends the writer if the engine hasn't read to EOF.
	defer pr.Close()
	name := engine.VolumeName(c.Project, key)
	err := e.withHelper(ctx, helper{mount: name, at: fillDir, labels: engine.ObjectLabels(c), volume: mountedLabels(c, key)}, func(id string) error {
		// The engine's response to a broken stream hides the cause.
		r := &failing{r: pr}
		err := e.cli.CopyToContainer(ctx, id, fillDir, r, container.CopyToContainerOptions{})
		if r.err != nil {
			return r.err
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("fill volume %s: %w", name, err)
	}
	return nil
}

type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

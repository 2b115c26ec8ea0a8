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

// fillDir is where a helper has the volume that it fills.
const fillDir = "/workspace"

// fill puts the policy or a read-only copy into a volume of the project.
func (e *Engine) fill(ctx context.Context, c *compose.Compiled, key string) error {
	pr, pw := io.Pipe()
	go func() {
		w := tar.NewWriter(pw)
		err := copytree.Volume(w, c, key)
		pw.CloseWithError(errors.Join(err, w.Close()))
	}()
	// Ends the writer when the engine did not read to the end.
	defer pr.Close()
	name := engine.VolumeName(c.Project, key)
	err := e.withHelper(ctx, helper{mount: name, at: fillDir, labels: engine.ObjectLabels(c), volume: mountedLabels(c, key)}, func(id string) error {
		// The engine's answer to a broken stream hides why it broke.
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

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
)

// fillDir is where a helper has the volume that it fills.
const fillDir = "/workspace"

// fill puts the policy or a read-only copy into a volume of the project.
func (e *Engine) fill(ctx context.Context, c *compose.Compiled, key string) error {
	pr, pw := io.Pipe()
	go func() {
		w := tar.NewWriter(pw)
		err := fillTar(w, c, key)
		pw.CloseWithError(errors.Join(err, w.Close()))
	}()
	// Ends the writer when the engine did not read to the end.
	defer pr.Close()
	name := engine.VolumeName(c.Project, key)
	err := e.withHelper(ctx, helper{mount: name, at: fillDir, labels: objectLabels(c)}, func(id string) error {
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

func fillTar(w *tar.Writer, c *compose.Compiled, key string) error {
	if key == compose.PolicyVolume {
		if c.Policy == nil {
			return errors.New("the project has no policy")
		}
		data := firewall.EncodePolicy(c.Policy)
		if err := w.WriteHeader(&tar.Header{Name: policyFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	}
	cp, ok := c.Copies[key]
	if !ok {
		return fmt.Errorf("nothing says what goes into volume %q", key)
	}
	// The worker reads them, whose uid another `user:` may have chosen.
	o := copyOptions{Exclude: cp.Exclude, Readable: true}
	source := cp.Source
	if f := c.Facts; f != nil {
		o.UID, o.GID = f.UID, f.GID
		if s, ok := f.Sources[source]; ok && s.Real != "" {
			source = s.Real
		} else if !filepath.IsAbs(source) {
			source = filepath.Join(f.ProjectDir, source)
		}
	}
	return copyTree(w, source, o)
}

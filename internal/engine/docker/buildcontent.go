package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Contents returns the hash of what the image of each service is built from, "sha256:…":
// the files that are sent, by name, content and whether they are executable, as git keeps
// them. It is the same in every checkout, and without the values of arguments.
func Contents(ctx context.Context, c *compose.Compiled) (map[string]string, error) {
	out, done := map[string]string{}, map[[2]string]string{}
	for _, service := range sortedKeys(c.Project.Services) {
		b := c.Project.Services[service].Build
		if b == nil {
			continue
		}
		at := [2]string{engine.HostPath(c, b.Context), b.Dockerfile}
		if done[at] == "" {
			sum, err := contentOf(ctx, at[0], at[1])
			if err != nil {
				return nil, fmt.Errorf("build of %s: %w", service, err)
			}
			done[at] = sum
		}
		out[service] = done[at]
	}
	return out, nil
}

func contentOf(ctx context.Context, dir, dockerfile string) (string, error) {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		_, _, err := writeContext(ctx, w, dir, dockerfile)
		w.CloseWithError(err)
		written <- err
	}()
	h := sha256.New()
	err := hashEntries(h, tar.NewReader(r))
	r.CloseWithError(errors.New("not read to its end"))
	if failed := <-written; failed != nil {
		err = failed
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

// hashEntries leaves out directories, which git doesn't keep.
func hashEntries(h io.Writer, t *tar.Reader) error {
	for {
		e, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case e.Typeflag == tar.TypeDir:
			continue
		}
		fmt.Fprintf(h, "%c %t %q %q %d\n", e.Typeflag, e.Mode&0o111 != 0 && e.Typeflag == tar.TypeReg, e.Name, e.Linkname, e.Size)
		if _, err := io.Copy(h, t); err != nil {
			return err
		}
	}
}

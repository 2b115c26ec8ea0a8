package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// ContentHash is the hash of what an image is built from, "sha256:…": the files of the
// context that are sent, by name, content and whether they are executable, as git keeps
// them. It is the same in every checkout, and without the values of arguments.
func ContentHash(ctx context.Context, dir, dockerfile string) (string, error) {
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

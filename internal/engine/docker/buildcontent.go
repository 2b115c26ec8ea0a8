package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/llmdo/workshop/internal/engine"
)

// ContentHash is the hash of what an image is built from, "sha256:…": the files of the
// context that are sent, by name, content and whether they are executable, as git keeps
// them. It is the same in every checkout, and without the values of arguments.
func ContentHash(ctx context.Context, dir, dockerfile string) (string, error) {
	return contentOf(func(w io.Writer) error {
		_, _, err := writeContext(ctx, w, dir, dockerfile)
		return err
	})
}

// contentOf is [ContentHash] of the context that a function writes.
func contentOf(write func(io.Writer) error) (string, error) {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	h := sha256.New()
	err := hashEntries(h, tar.NewReader(r))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
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

// spooled is a temporary file, which goes with its end.
type spooled struct{ *os.File }

// Close implements [io.Closer].
func (s spooled) Close() error { return errors.Join(s.File.Close(), os.Remove(s.Name())) }

// spool reads the context of a build of the plan into a file. What that has is what the
// plan was made with.
func spool(ctx context.Context, p *engine.Plan, service string) (Build, spooled, error) {
	b, err := newBuild(p.Compiled, service, p.Compiled.Project.Services[service].Build)
	if err != nil {
		return b, spooled{}, err
	}
	file, err := os.CreateTemp("", "workshop-build-*.tar")
	if err != nil {
		return b, spooled{}, err
	}
	f := spooled{file}
	if err = b.read(ctx, f); err == nil && b.Hash != p.Desired.Builds[service] {
		err = fmt.Errorf("the files in %s have changed since they were hashed: run `workshop up` again", b.Context)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
	}
	return b, f, err
}

// maxLinks of a Dockerfile are followed.
const maxLinks = 8

// dockerfileIn returns the text of a build's Dockerfile from its context. It is at its
// start again then.
func dockerfileIn(files io.ReadSeeker, name string) ([]byte, error) {
	name = path.Clean(filepath.ToSlash(name))
	for range maxLinks {
		e, text, err := entryIn(files, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the Dockerfile %s: %w", name, err)
		case e.Typeflag != tar.TypeSymlink:
			return text, nil
		}
		name = path.Join(path.Dir(name), e.Linkname)
	}
	return nil, fmt.Errorf("the Dockerfile is a link of more than %d others", maxLinks)
}

// entryIn finds one entry of a context, and what it has where it is a file.
func entryIn(files io.ReadSeeker, name string) (*tar.Header, []byte, error) {
	defer files.Seek(0, io.SeekStart)
	for t := tar.NewReader(files); ; {
		e, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil, errors.New("its files are not in the build context: see .dockerignore")
		case err != nil:
			return nil, nil, err
		case e.Name != name:
			continue
		case e.Size > maxDockerfile:
			return nil, nil, fmt.Errorf("has %d bytes, more than %d", e.Size, maxDockerfile)
		}
		text, err := io.ReadAll(t)
		return e, text, err
	}
}

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

const (
	// toolsDir is the mount point of the tool volume in helpers; the archive API
	// uses paths of a container.
	toolsDir = "/opt/workshop"
	// lockAge is the age from which a container that serves as a lock counts as
	// stale.
	lockAge = time.Minute
	// labelTools is on the tool volume, with its name; a volume that the engine
	// created implicitly for a container has no label.
	labelTools = "dev.llmdo.workshop.tools"
)

// errTools means that the tool volume's content doesn't match its name.
var errTools = errors.New("wrong content")

// fillTools makes sure that the tool volume has the complete program, which is
// verified by size and hash before every use. A volume with other content is never
// repaired in place: if nothing uses it, it is recreated, else it is an error.
func (e *Engine) fillTools(ctx context.Context, name string, labels map[string]string) error {
	err := e.verifyTools(ctx, name, labels)
	if err == nil || !errors.Is(err, errTools) && !cerrdefs.IsNotFound(err) {
		return err
	}
	if v, err := e.cli.VolumeInspect(ctx, name); err == nil && len(v.Labels) > 0 && v.Labels[labelTools] != name {
		return fmt.Errorf("volume %s exists and doesn't belong to a workshop: remove it with `docker volume rm %s`", name, name)
	}
	unlock, err := e.lockTools(ctx, name, labels)
	if err != nil {
		return fmt.Errorf("tool volume %s: %w", name, e.explain(err))
	}
	defer unlock()
	// Another run may have filled it before this one got the lock.
	err = e.verifyTools(ctx, name, labels)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTools):
		e.settle() // so that our own helpers don't count as users
		if err := e.cli.VolumeRemove(ctx, name, false); err != nil {
			return fmt.Errorf("the content of tool volume %s doesn't match its name, and it is in use (%w): stop the workshops that use it (`docker ps -a --filter volume=%s`) and try again", name, err, name)
		}
	case !cerrdefs.IsNotFound(err):
		return err
	}
	made := map[string]string{labelTools: name}
	if _, err := e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: made}); err != nil {
		return fmt.Errorf("tool volume %s: %w", name, err)
	}
	data, err := e.program(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Name: path.Base(compose.InitPath), Typeflag: tar.TypeReg, Mode: int64(toolMode(name)), Size: int64(len(data))}
	if err := errors.Join(w.WriteHeader(h), write(w, data), w.Close()); err != nil {
		return fmt.Errorf("tool volume %s: %w", name, err)
	}
	err = e.withHelper(ctx, helper{mount: name, at: toolsDir, labels: labels}, func(id string) error {
		return e.cli.CopyToContainer(ctx, id, toolsDir, &b, container.CopyToContainerOptions{})
	})
	if err != nil {
		return fmt.Errorf("fill the tool volume %s: %w", name, err)
	}
	return e.verifyTools(ctx, name, labels)
}

// verifyTools returns nil, an error that is errTools, or one that is "not
// found".
func (e *Engine) verifyTools(ctx context.Context, name string, labels map[string]string) error {
	arch, err := e.arch(ctx)
	if err != nil {
		return err
	}
	want, err := e.init.Names(arch)
	if err != nil {
		return err
	}
	// A helper that names a missing volume would create it.
	v, err := e.cli.VolumeInspect(ctx, name)
	if err != nil {
		return err
	}
	if done, err := e.verifyHere(ctx, v, want); done {
		return err
	}
	return e.withHelper(ctx, helper{mount: name, at: toolsDir, readOnly: true, labels: labels}, func(id string) error {
		r, stat, err := e.cli.CopyFromContainer(ctx, id, compose.InitPath)
		if cerrdefs.IsNotFound(err) {
			return fmt.Errorf("%w: it is empty", errTools)
		}
		if err != nil {
			return fmt.Errorf("verify the tool volume %s: %w", name, err)
		}
		defer r.Close()
		tr := tar.NewReader(r)
		if _, err := tr.Next(); err != nil {
			return fmt.Errorf("verify the tool volume %s: %w", name, err)
		}
		if err := check(tr, stat.Size, stat.Mode, toolMode(name), want); err != nil {
			return fmt.Errorf("verify the tool volume %s: %w", name, err)
		}
		return nil
	})
}

// verifyHere reads the volume directly on this machine; done is false if that isn't
// possible.
func (e *Engine) verifyHere(ctx context.Context, v volume.Volume, want initimage.Names) (done bool, err error) {
	f := e.openHere(ctx, v, path.Base(compose.InitPath))
	if f == nil {
		return false, nil
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return false, nil
	}
	return true, check(f, stat.Size(), stat.Mode(), toolMode(v.Name), want)
}

// check compares a file's content and mode with the program's: if a worker could
// read it, its process would be dumpable there.
func check(r io.Reader, size int64, mode, wantMode fs.FileMode, want initimage.Names) error {
	if size != want.Size || !mode.IsRegular() || mode.Perm() != wantMode {
		return fmt.Errorf("%w: %d bytes, mode %s", errTools, size, mode)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(r, want.Size+1)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != want.Digest {
		return fmt.Errorf("%w: another hash", errTools)
	}
	return nil
}

// toolMode is the program's mode on a tool volume.
func toolMode(name string) fs.FileMode {
	if compose.IsReadableTools(name) {
		return initimage.ReadableToolMode
	}
	return initimage.ToolMode
}

func (e *Engine) program(ctx context.Context) ([]byte, error) {
	arch, err := e.arch(ctx)
	if err != nil {
		return nil, err
	}
	return e.init.Binary(arch)
}

// lockTools takes a lock among all clients of the engine: a container of a fixed
// name, never started. A stale one of a killed run is removed.
func (e *Engine) lockTools(ctx context.Context, name string, labels map[string]string) (func(), error) {
	lock := name + "-lock"
	for {
		id, err := e.createHelper(ctx, helper{name: lock, labels: labels})
		if err == nil {
			return func() { e.removeHelper(id) }, nil
		}
		if !cerrdefs.IsConflict(err) {
			return nil, err
		}
		old, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("name", "^/?"+lock+"$"))})
		if err != nil {
			return nil, err
		}
		for _, c := range old {
			switch {
			case len(c.Names) == 0 || strings.TrimPrefix(c.Names[0], "/") != lock:
			case !engine.IsHelper(c.Labels):
				return nil, fmt.Errorf("container %s exists and doesn't belong to a workshop: remove it with `docker rm -f %s`", lock, lock)
			case time.Since(time.Unix(c.Created, 0)) > lockAge:
				e.removeHelper(c.ID)
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func write(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

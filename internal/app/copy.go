package app

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/safetar"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// copyLimits bound what a worker can make of a copy here (B60).
var copyLimits = safetar.Limits{Bytes: 10 << 30, Entries: 100_000, Depth: 128}

// connectForCopy is the project whose worker files are copied from or to. The caller closes
// it.
func (env *Env) connectForCopy(ctx context.Context, worker string) (*Running, error) {
	e, seen, err := env.observeServices(ctx, []string{worker}, false, compose.RoleWorker)
	if err != nil {
		return nil, err
	}
	for _, c := range seen.Containers {
		if c.Service == worker && !compose.IsWorkers(c.Role) {
			e.Close()
			return nil, Fail(CodeRefused, "cp: %s is the workshop's %s, and files are copied from and to workers only", worker, c.Role)
		}
		if c.Service == worker && c.NotCompared {
			e.Close()
			return nil, EngineError(engine.RefuseNotCompared(worker))
		}
		if c.Service == worker && len(c.Replaced) > 0 {
			e.Close()
			return nil, EngineError(engine.RefuseReplaced(worker, c.Replaced))
		}
	}
	return e, nil
}

// CopyOut copies a file or directory of a worker to a path here, or with "-" to w
// as a tar stream. What leads out of that path is skipped, with a warning.
func (env *Env) CopyOut(ctx context.Context, worker, file, to string, unlimited bool, w io.Writer) error {
	e, err := env.connectForCopy(ctx, worker)
	if err != nil {
		return err
	}
	defer e.Close()
	stream, err := e.CopyFrom(ctx, e.Name, worker, path.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return Fail(CodeFailed, "cp: %s:%s: no such file or directory", worker, file)
	}
	if err != nil {
		return EngineError(err)
	}
	defer stream.Close()
	if to == "-" {
		_, err := io.Copy(w, stream)
		return err
	}
	dir, name, err := env.openTarget(to)
	if err != nil {
		return err
	}
	defer dir.Close()
	limits := copyLimits
	if unlimited {
		limits = safetar.Limits{}
	}
	skipped, err := safetar.Extract(dir, name, stream, limits)
	for _, s := range skipped {
		env.warn("cp: skipped: %s", Printable(s))
	}
	if errors.Is(err, safetar.ErrLimit) {
		return Fail(CodeFailed, "cp: %w", err).Hint("look at what it is (`workshop exec %s -- du -a %s`); `--unlimited` copies it all", worker, shellquote.Quote(file))
	}
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		if !filepath.IsAbs(bad.Path) { // of a file in dir
			bad.Path = filepath.Join(dir.Name(), bad.Path)
		}
		return Fail(CodeFailed, "cp: %s: %w", Printable(bad.Path), bad.Err)
	}
	if err != nil {
		return Fail(CodeFailed, "cp: %w", err)
	}
	return nil
}

// CopyIn copies a file or directory here, or with "-" what the tar stream has, to a
// path in a worker.
func (env *Env) CopyIn(ctx context.Context, from, worker, file string, stream io.Reader) error {
	e, err := env.connectForCopy(ctx, worker)
	if err != nil {
		return err
	}
	defer e.Close()
	if from == "-" {
		dir := path.Clean(file)
		if !isDir(ctx, e, worker, dir) {
			return hintStream(Fail(CodeFailed, "cp: %s:%s: not an existing directory", worker, file), worker)
		}
		err := e.CopyTo(ctx, e.Name, worker, dir, stream)
		if err != nil && strings.Contains(err.Error(), "read the tar stream") {
			return hintStream(Fail(CodeFailed, "cp: %w", err), worker)
		}
		return env.copyInError(ctx, e, worker, dir, err)
	}
	root, source, err := env.openHere(from, false)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(source); err != nil {
		return copyHereError(root, from, err)
	}
	dir, name := path.Clean(file), filepath.Base(env.Abs(from))
	place, ok := lookIn(ctx, e, worker, dir)
	if !ok || place.Typeflag != tar.TypeDir {
		if strings.HasSuffix(file, "/") {
			return Fail(CodeFailed, "cp: %s:%s: not a directory", worker, file)
		}
		dir, name = path.Split(dir)
		dir = path.Clean(dir)
		if place, ok = lookIn(ctx, e, worker, dir); !ok {
			return Fail(CodeFailed, "cp: %s:%s: no such file or directory", worker, dir)
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(safetar.Pack(w, root, source, name, place.Uid, place.Gid)) }()
	defer r.Close()
	return env.copyInError(ctx, e, worker, path.Join(dir, name), e.CopyTo(ctx, e.Name, worker, dir, r))
}

// copyInError says what to do where a target can't be written to.
func (env *Env) copyInError(ctx context.Context, r *Running, worker, target string, err error) error {
	if err == nil || !readOnlyText().MatchString(err.Error()) {
		return EngineError(err)
	}
	f := Fail(CodeFailed, "cp: %w", err)
	if s, w := env.quietWorker(ctx, r, worker); w != nil {
		if hint := hintReadOnly(s.readOnlyPlaces(w, "", []string{target}), env.Shown(r.File)); hint != "" {
			return f.Hint("%s", hint)
		}
	}
	return f.Hint("%s can write to its read-write mounts, /tmp, /scratch and its home directory", worker)
}

// hintStream says what "-" is.
func hintStream(f *Failure, worker string) *Failure {
	return f.Hint("- is a tar stream, and its target an existing directory: `tar c FILE | workshop cp - %s:/tmp`", worker)
}

// lookIn reads what a path in a worker is from the first entry of its tar
// stream: engines have no other way in common.
func lookIn(ctx context.Context, e *Running, worker, file string) (*tar.Header, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.CopyFrom(ctx, e.Name, worker, file)
	if err != nil {
		return nil, false
	}
	defer stream.Close()
	h, err := tar.NewReader(stream).Next()
	return h, err == nil
}

// isDir reports whether a path in a worker is a directory.
func isDir(ctx context.Context, e *Running, worker, path string) bool {
	h, ok := lookIn(ctx, e, worker, path)
	return ok && h.Typeflag == tar.TypeDir
}

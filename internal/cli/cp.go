package cli

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/shellword"
	"github.com/llmdo/workshop/internal/tarball"
)

func (a *program) cpCommand() *cobra.Command {
	unlimited := false
	cmd := &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy files between a worker and this machine",
		Long: `cp copies a file or directory. One side is WORKER:PATH, the other a path here,
or - for a tar stream on standard input or output.

The worker runs, and its user reads and writes there: what that user can't, cp
can't.

What comes out of a worker is not trusted: links and names that lead out of
TARGET, devices and set-uid bits are left behind, and said so; more than 10 GiB,
100,000 entries or 128 directories below one another is refused (--unlimited
lifts these), and a stream isn't written to a terminal.`,
		Example: `  workshop cp reviewer:/output/report.md .
  workshop cp ./data builder:/output
  workshop cp reviewer:/output - | tar t
  workshop cp builder:/scratch/log .`,
		Args:              usageArgs(2, 2),
		ValidArgsFunction: a.completeCopy,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.cp(ctx, cmd, args[0], args[1], unlimited)
		}),
	}
	cmd.Flags().BoolVar(&unlimited, "unlimited", false, "copy out of a worker however much it is")
	return cmd
}

// cpLimits bound what a worker can make of a copy here (B60).
var cpLimits = tarball.Limits{Bytes: 10 << 30, Entries: 100_000, Depth: 128}

func (a *program) cp(ctx context.Context, cmd *cobra.Command, from, to string, unlimited bool) error {
	fromWorker, fromPath, out := splitWorker(from)
	toWorker, toPath, in := splitWorker(to)
	if out == in {
		return usageError(cmd, "cp: exactly one side is WORKER:PATH")
	}
	if out && !path.IsAbs(fromPath) || in && !path.IsAbs(toPath) {
		return usageError(cmd, "cp: the path in a worker is absolute, as in %s:/scratch", fromWorker+toWorker)
	}
	if out && to == "-" && isTerminal(a.Out) {
		return usageError(cmd, "cp: what a worker made isn't written to a terminal: send it on, as in `| tar t`")
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, seen, err := a.Observe(ctx, t, false)
	if err != nil {
		return err
	}
	defer e.Close()
	worker := fromWorker + toWorker
	if err := app.Services(t, seen, []string{worker}); err != nil {
		return err
	}
	for _, c := range seen.Containers {
		if c.Service == worker && (c.Role == "room" || c.Role == "guard") {
			return app.Fail(app.CodeRefused, "cp: %s is the workshop's %s, and files are copied from and to workers only", worker, c.Role)
		}
	}
	if out {
		limits := cpLimits
		if unlimited {
			limits = tarball.Limits{}
		}
		return a.copyOut(ctx, e, fromWorker, fromPath, to, limits)
	}
	return a.copyIn(ctx, e, from, toWorker, toPath)
}

// splitWorker tells WORKER:PATH from a path; C:\x and ./a:b are paths.
func splitWorker(arg string) (worker, file string, ok bool) {
	worker, file, found := strings.Cut(arg, ":")
	if !found || !app.ValidName(worker) || len(worker) == 1 && filepath.VolumeName(arg) != "" {
		return "", arg, false
	}
	return worker, file, true
}

func (a *program) copyOut(ctx context.Context, e *app.Running, worker, file, to string, limits tarball.Limits) error {
	stream, err := e.CopyFrom(ctx, e.Name, worker, path.Clean(file))
	if errors.Is(err, fs.ErrNotExist) {
		return app.Fail(app.CodeFailed, "cp: %s:%s is not there", worker, file)
	}
	if err != nil {
		return app.EngineError(err)
	}
	defer stream.Close()
	if to == "-" {
		_, err := io.Copy(a.Out, stream)
		return err
	}
	dir, name := a.Abs(to), ""
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if strings.HasSuffix(to, "/") {
			return app.Fail(app.CodeFailed, "cp: %s is no directory", to)
		}
		dir, name = filepath.Dir(dir), filepath.Base(dir)
	}
	skipped, err := tarball.Extract(dir, name, stream, limits)
	for _, s := range skipped {
		a.warn("cp: left behind: %s", app.Printable(s))
	}
	if errors.Is(err, tarball.ErrLimit) {
		return app.Fail(app.CodeFailed, "cp: %w", err).Hint("look at what it is (`workshop exec %s -- du -a %s`); `--unlimited` copies it all", worker, shellword.Quote(file))
	}
	if err != nil {
		return app.Fail(app.CodeFailed, "cp: %w", err)
	}
	return nil
}

func (a *program) copyIn(ctx context.Context, e *app.Running, from, worker, file string) error {
	if from == "-" {
		return a.copyInError(e.CopyTo(ctx, e.Name, worker, path.Clean(file), a.In), worker)
	}
	source := a.Abs(from)
	if _, err := os.Lstat(source); err != nil {
		return app.Fail(app.CodeFailed, "cp: %s: %w", from, app.PlainPathError(err))
	}
	dir, name := path.Clean(file), filepath.Base(source)
	place, ok := a.lookIn(ctx, e, worker, dir)
	if !ok || place.Typeflag != tar.TypeDir {
		if strings.HasSuffix(file, "/") {
			return app.Fail(app.CodeFailed, "cp: %s:%s is no directory", worker, file)
		}
		dir, name = path.Split(dir)
		dir = path.Clean(dir)
		if place, ok = a.lookIn(ctx, e, worker, dir); !ok {
			return app.Fail(app.CodeFailed, "cp: %s:%s is not there", worker, dir)
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(tarball.Pack(w, source, name, place.Uid, place.Gid)) }()
	defer r.Close()
	return a.copyInError(e.CopyTo(ctx, e.Name, worker, dir, r), worker)
}

// copyInError says what to do where the target can't be written to.
func (a *program) copyInError(err error, worker string) error {
	if err != nil && strings.Contains(err.Error(), "read-only") {
		return app.Fail(app.CodeFailed, "cp: %w", err).Hint("%s can write to its read-write mounts, /tmp, /scratch and its home directory", worker)
	}
	return app.EngineError(err)
}

// lookIn reads what a path in a worker is from the first entry of its tar
// stream: engines have no other way in common.
func (a *program) lookIn(ctx context.Context, e *app.Running, worker, file string) (*tar.Header, bool) {
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

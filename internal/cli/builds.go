package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/llmdo/workshop/internal/app"
)

// BuildRequest is an image that an engine is about to build from files of the
// repository: its instructions run on the engine, with a network.
type BuildRequest struct {
	For        string // the workers that run it
	Context    string // directory
	Dockerfile string // path below Context
	Target     string
	Args       map[string]string
	// Digest is that of all that goes into the build.
	Digest string
	// Text is the Dockerfile.
	Text  []byte
	Files int   // that are sent
	Bytes int64 // of them
}

// approver asks about builds, once per content; yes is --yes.
func (a *program) approver(again string, yes bool) func(context.Context, BuildRequest) error {
	return func(ctx context.Context, b BuildRequest) error {
		path, err := a.approvalPath(b.Digest)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if yes {
			a.detail("building the image of %s from %s: agreed by --yes", b.For, b.Context)
			return nil
		}
		if !a.interactive() {
			return app.Fail(app.CodeRefused, "the image of %s must be built from %s, and nobody is there to agree", b.For, a.shown(b.Context)).
				hint("look at %s, then run `%s --yes`", a.shown(filepath.Join(b.Context, b.Dockerfile)), again)
		}
		a.showBuild(b)
		agreed, err := a.ask(ctx, "build it? (asked once per content)")
		if err != nil {
			return err
		}
		if !agreed {
			return app.Fail(app.CodeRefused, "the build for %s was declined", b.For)
		}
		note := fmt.Sprintf("%s %s %s\n", time.Now().UTC().Format(time.RFC3339), b.For, b.Context)
		return writeState(path, []byte(note))
	}
}

// approvalPath is the file whose existence says that a content was agreed to.
func (a *program) approvalPath(digest string) (string, error) {
	dir := a.stateDir()
	if dir == "" {
		return "", app.Fail(app.CodeFailed, "no directory for approvals: neither HOME nor XDG_STATE_HOME is set")
	}
	return filepath.Join(dir, "builds", strings.ReplaceAll(digest, ":", "-")), nil
}

// showBuild shows what would be built.
func (a *program) showBuild(b BuildRequest) {
	fmt.Fprintf(a.Err, "the image of %s is to be built on the engine:\n", b.For)
	fmt.Fprintf(a.Err, "  context     %s (%s, %s)\n  dockerfile  %s\n",
		printable(b.Context), count(b.Files, "file"), units.BytesSize(float64(b.Bytes)), printable(b.Dockerfile))
	if b.Target != "" {
		fmt.Fprintf(a.Err, "  target      %s\n", printable(b.Target))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		fmt.Fprintf(a.Err, "  argument    %s=%s\n", printable(name), printable(b.Args[name]))
	}
	for line := range strings.Lines(string(b.Text)) {
		fmt.Fprintf(a.Err, "  | %s\n", printable(line))
	}
}

package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/shellword"
)

//go:embed init.workshop.yaml.tmpl
var initWorkshop string

//go:embed init.worker.md.tmpl
var initWorker string

// initData fills the two templates.
type initData struct{ Name, Worker string }

func (a *program) initCommand() *cobra.Command {
	var d initData
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a commented workshop.yaml and a worker",
		Long: `init writes workshop.yaml and workers/NAME.md into DIR (default: here). The
result validates, and comes up without pulling an image. A file that exists is
never overwritten.`,
		Example: `  workshop init
  workshop init --name code-review --worker reviewer ./review`,
		Args: usageArgs(0, 1),
		RunE: a.run(func(_ context.Context, cmd *cobra.Command, args []string) error {
			dir := a.Dir
			if len(args) == 1 {
				dir = a.Abs(args[0])
			}
			return a.init(cmd, dir, d)
		}),
	}
	cmd.Flags().StringVar(&d.Name, "name", "", "name of the workshop (default: the directory's)")
	cmd.Flags().StringVar(&d.Worker, "worker", "greeter", "name of the first worker")
	return cmd
}

func (a *program) init(cmd *cobra.Command, dir string, d initData) error {
	if d.Name == "" {
		d.Name = app.ProjectSafe(filepath.Base(dir), "my-workshop")
	}
	for flag, name := range map[string]string{"name": d.Name, "worker": d.Worker} {
		if !app.ValidName(name) {
			return usageError(cmd, "--%s %q: only lower-case letters, digits, _ and -, at most %d", flag, name, app.MaxProjectName)
		}
	}
	files := []struct{ path, template string }{
		{"workshop.yaml", initWorkshop},
		{filepath.Join("workers", d.Worker+".md"), initWorker},
	}
	if app.RealPath(dir) == app.RealPath(a.Home) {
		return app.Fail(app.CodeFailed, "%s is your home directory, and no worker gets that (B7)", a.Shown(dir)).
			Hint("give a directory of the project: `%s`", commandLine(cmd, "init my-workshop"))
	}
	if existing, ok := app.FileIn(dir); ok {
		return notOverwritten(a.Shown(existing))
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.path)); err == nil {
			return notOverwritten(a.Shown(filepath.Join(dir, f.path)))
		}
	}
	fill := strings.NewReplacer("{{.Name}}", d.Name, "{{.Worker}}", d.Worker)
	for _, f := range files {
		shown := a.Shown(filepath.Join(dir, f.path))
		if err := writeNew(dir, f.path, []byte(fill.Replace(f.template))); errors.Is(err, fs.ErrExist) {
			return notOverwritten(shown)
		} else if err != nil {
			return fmt.Errorf("init: %s: %w", shown, err)
		}
		fmt.Fprintln(a.Out, shown)
	}
	enter := ""
	if dir != a.Dir {
		enter = fmt.Sprintf("`cd %s`, ", shellword.Quote(a.Shown(dir)))
	}
	a.say("next: %s`%s`, then `%s`", enter,
		commandLine(cmd, "up"), commandLine(cmd, "exec %s -- ls -l /workspace", d.Worker))
	return nil
}

func notOverwritten(path string) *app.Failure {
	return app.Fail(app.CodeFailed, "%s exists and is not overwritten", path).
		Hint("move it away, or give another directory: `workshop init DIR`")
}

// writeNew makes a file in a directory that must not exist. Symbolic links of a
// repository lead it nowhere else.
func writeNew(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

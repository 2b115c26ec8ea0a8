package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Main runs the root command that newRoot makes with the arguments, streams
// and environment of this process, and returns its exit code.
func Main(newRoot func(*command.System) *cobra.Command) int {
	ownerMay()
	collectLater()
	args, under := os.Args[min(1, len(os.Args)):], ""
	version := (&command.System{Env: &app.Env{Version: linkedVersion}}).BuildVersion()
	if isPlugin(os.Args) {
		rest, code, done := asPlugin(os.Args, version)
		if done {
			return code
		}
		args, under = rest, "docker "
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	ctx, interrupts := command.NewInterrupts(context.Background(), os.Exit)
	defer interrupts.Stop()
	return Run(ctx, newRoot, args, &command.System{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Env: &app.Env{
			Lookup: os.LookupEnv, Environ: os.Environ, Dir: dir, Home: app.HomeDir(os.LookupEnv), Engine: app.Engines, Version: version, ResolvConf: testOnlyResolvConf,
		},
		Interrupts: interrupts,
		Executable: executable(os.Args, dir),
		Under:      under,
	})
}

// Run is Main with everything given: it runs one command line and returns its
// exit code. Errors have been printed when it returns.
func Run(ctx context.Context, newRoot func(*command.System) *cobra.Command, args []string, sys *command.System) int {
	sys.Args = args
	root := newRoot(sys)
	root.SetArgs(args)
	root.SetIn(sys.In)
	root.SetOut(sys.Out)
	root.SetErr(sys.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if errors.Is(err, errVersionShown) {
		err = nil
	}
	return sys.Report(ctx, cmd, err)
}

// testOnlyResolvConf is asked in tests in place of the machine's.
var testOnlyResolvConf string

// executable is [command.System.Executable] for this process.
func executable(args []string, dir string) string {
	if len(args) > 0 && args[0] != "" {
		if strings.ContainsRune(args[0], filepath.Separator) {
			path := args[0]
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if _, err := os.Stat(path); err == nil {
				return path
			}
		} else if path, err := exec.LookPath(args[0]); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

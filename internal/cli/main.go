package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// Main runs the root command that newRoot makes with the arguments, streams
// and environment of this process, and returns its exit code.
func Main(newRoot func(*System) *cobra.Command) int {
	ownerMay()
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	ctx, interrupts := newInterrupts(context.Background(), os.Exit)
	defer interrupts.stop()
	return Run(ctx, newRoot, os.Args[1:], &System{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Env: &app.Env{
			Lookup: os.LookupEnv, Dir: dir, Home: app.HomeDir(os.LookupEnv), Engine: app.Engines, Version: linkedVersion,
		},
		Interrupts: interrupts,
		Program:    programPath(os.Args, dir),
		begin:      interrupts.watch,
	})
}

// Run is Main with everything given: it runs one command line and returns its
// exit code. Errors have been printed when it returns.
func Run(ctx context.Context, newRoot func(*System) *cobra.Command, args []string, sys *System) int {
	sys.words = args
	root := newRoot(sys)
	root.SetArgs(args)
	root.SetIn(sys.In)
	root.SetOut(sys.Out)
	root.SetErr(sys.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if errors.Is(err, errVersionShown) {
		err = nil
	}
	return report(ctx, sys, cmd, err)
}

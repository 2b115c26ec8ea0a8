package worker

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/engine"
)

// execOptions are the flags of exec and shell.
type execOptions struct {
	noTTY   bool
	env     []string
	workdir string
	user    string
	hint    bool // at the end: what of the boundary may be why it failed
	refused bool // at the end: what was refused during it
	timeout time.Duration
}

// Exec is the verb exec.
func Exec(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [FLAGS] WORKER -- COMMAND [ARG...]",
		Short: "Run a command in a worker",
		Long: `exec runs a command in a worker that is up. Input, terminal, signals and the
exit code are passed on. The exit code is 125 where the command could not be
started, 126 where it is not executable and 127 where it was not found.

A command ends when this program does, even when that is killed; its terminal
is hung up before. What it left in the background when it ended stays, but in
process mode. ` + "`resources.timeout`" + ` ends tool calls, not commands of exec.

On a terminal, each new refusal of the guard is one line while the command runs,
as in shell. Where the command fails, or printed what the guard answered, the end
says what was refused and not shown yet.`,
		Example: `  workshop exec greeter -- ls -l /workspace
  git diff | workshop exec reviewer -- wc -l
  workshop exec -e LANG=C -w /scratch builder -- make`,
		Args:              command.Args(2, -1),
		ValidArgsFunction: a.CompleteWorkers(1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			worker, argv := args[0], args[1:]
			if argv[0] == "--" {
				argv = argv[1:]
			}
			if len(argv) == 0 {
				return command.UsageError(cmd, "exec: argument missing: the command")
			}
			o.hint = true
			return a.exec(ctx, worker, argv, o)
		}),
		Annotations: command.PassesExitCode(),
	}
	o.flags(cmd)
	// Fingers type `exec -it`; both are what exec does by itself.
	for _, f := range [][2]string{{"interactive", "i"}, {"tty", "t"}} {
		cmd.Flags().BoolP(f[0], f[1], true, "accepted as in Compose")
		_ = cmd.Flags().MarkHidden(f[0])
	}
	// What follows WORKER belongs to the command.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (o *execOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.noTTY, "no-tty", "T", false, "no terminal, even if there is one")
	cmd.Flags().StringArrayVarP(&o.env, "env", "e", nil, "NAME=VALUE, or NAME to pass on yours (repeatable)")
	cmd.Flags().StringVarP(&o.workdir, "workdir", "w", "", "directory to run in")
	cmd.Flags().StringVarP(&o.user, "user", "u", "", "uid or uid:gid, never root (default: the worker's)")
}

func (a verbs) exec(ctx context.Context, worker string, command []string, o execOptions) error {
	if err := app.CheckUser(o.user); err != nil {
		return err
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, err := a.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	return a.execIn(ctx, e, worker, command, o)
}

// execIn is exec in a project that was found.
func (a verbs) execIn(ctx context.Context, e *app.Running, worker string, command []string, o execOptions) error {
	if o.timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, o.timeout, app.TimedOut(o.timeout))
		defer cancel()
		ctx = limited
	}
	run := engine.ExecOptions{
		Command: command, Env: o.env, Workdir: o.workdir, User: o.user,
		Stdin: a.In, Stdout: a.Out, Stderr: a.Err,
	}
	var started time.Time
	var live *refusedWatch
	var signs app.Signs
	code, err := a.Exec(ctx, e, worker, run, &signs, func(run *engine.ExecOptions) (func(), error) {
		restore, err := a.attachTerminal(run, o.noTTY)
		if err != nil {
			return nil, err
		}
		started = time.Now()
		live = a.watchRefused(ctx, e, worker, run, started, &signs)
		if !a.Quiet {
			run.Stdout = signs.Tee(run.Stdout)
			if !run.TTY {
				run.Stderr = signs.Tee(run.Stderr)
			}
		}
		return func() {
			live.end()
			restore()
		}, nil
	})
	if late, ok := errors.AsType[app.TimedOut](context.Cause(ctx)); ok {
		a.PrintFailure(&app.Failure{Err: late})
		return app.Exit(app.CodeTimedOut)
	}
	if err != nil {
		return err
	}
	ran := app.Ran{Worker: worker, Dir: o.workdir, Started: started, Signs: &signs, Shown: live.hasTold}
	if o.refused {
		a.SayRefused(ctx, e, ran)
	}
	if o.hint {
		a.SayWhyFailed(ctx, e, ran, code)
	}
	if code != 0 {
		return app.Exit(code)
	}
	return nil
}

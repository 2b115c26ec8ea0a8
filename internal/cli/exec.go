package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// execOptions are the flags of exec and shell.
type execOptions struct {
	noTTY   bool
	env     []string
	workdir string
	user    string
	hint    bool // where a command fails: what of the boundary may be why
	refused bool // at the end: what was refused meanwhile
}

func (a *program) execCommand() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [FLAGS] WORKER -- COMMAND [ARG…]",
		Short: "Run a command in a worker",
		Long: `exec runs a command in a worker that is up. Input, terminal, signals and the
exit code are passed on. The exit code is 125 where the command could not be
started, 126 where it is not executable and 127 where it was not found.

A command ends when this program does, even when that is killed; its terminal
is hung up before. What it left in the background when it ended stays, but in
process mode.

On a terminal, each new refusal of the guard is one line while the command runs,
as in shell. Where the command fails, the end says what was refused and not shown
yet.`,
		Example: `  workshop exec greeter -- ls -l /workspace
  git diff | workshop exec reviewer -- wc -l
  workshop exec -e LANG=C -w /scratch builder -- make`,
		Args:              usageArgs(2, -1),
		ValidArgsFunction: a.completeWorkers(1),
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			worker, command := args[0], args[1:]
			if command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return usageError(cmd, "exec: argument missing: the command")
			}
			o.hint = true
			return a.exec(ctx, worker, command, o)
		}),
		Annotations: map[string]string{annotationCode: "yes"},
	}
	o.flags(cmd)
	// Fingers type `exec -it`; both are what exec does by itself.
	for _, f := range [][2]string{{"interactive", "i"}, {"tty", "t"}} {
		cmd.Flags().BoolP(f[0], f[1], true, "accepted as in Compose")
		_ = cmd.Flags().MarkHidden(f[0])
	}
	// What stands behind WORKER belongs to the command.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (o *execOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.noTTY, "no-tty", "T", false, "no terminal, even if there is one")
	cmd.Flags().StringArrayVarP(&o.env, "env", "e", nil, "NAME=VALUE, or NAME to pass on yours (repeatable)")
	cmd.Flags().StringVarP(&o.workdir, "workdir", "w", "", "directory to run in")
	cmd.Flags().StringVarP(&o.user, "user", "u", "", "uid or uid:gid, never root (default: the worker's)")
}

func (a *program) exec(ctx context.Context, worker string, command []string, o execOptions) error {
	if isRoot(o.user) {
		return app.Fail(app.CodeRefused, "exec: --user %s: nothing runs as root in a worker (B4)", o.user)
	}
	if isReserved(o.user) {
		return app.Fail(app.CodeRefused, "exec: --user %s: the guard or the outlet has that id, and nothing in a worker may (B60)", o.user)
	}
	if !numericUser(o.user) {
		return app.Fail(app.CodeExecFailed, "exec: --user %q is not uid or uid:gid in numbers", o.user)
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
	run := engine.ExecOptions{
		Command: command, Workdir: o.workdir, User: o.user, Directory: t.Dir,
		Stdin: a.In, Stdout: a.Out, Stderr: a.Err,
	}
	for _, variable := range o.env {
		if name, _, given := strings.Cut(variable, "="); !given {
			value, ok := a.Lookup(name)
			if !ok {
				continue
			}
			variable = name + "=" + value
		}
		run.Env = append(run.Env, variable)
	}
	a.SayLearning(ctx, e, worker)
	restore, err := a.attachTerminal(&run, o.noTTY)
	if err != nil {
		return err
	}
	started := time.Now()
	live := a.watchRefused(ctx, e, worker, &run, started)
	code, err := a.runIn(ctx, e, worker, run)
	live.end()
	restore()
	if err != nil {
		return a.execError(ctx, err, t, worker, command[0], o.workdir)
	}
	if o.refused {
		a.refusedMeanwhile(ctx, e, worker, started, live)
	}
	if code != 0 {
		if o.hint {
			a.whyFailed(ctx, e, worker, code, started, live)
		}
		return app.Exit(code)
	}
	return nil
}

// isRoot tells of "0", "root" and either with a group.
func isRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	return name == "root" || name != "" && strings.Trim(name, "0") == ""
}

// isReserved tells of the guard's and the outlet's ids, as uid or gid.
func isReserved(user string) bool {
	for part := range strings.SplitSeq(user, ":") {
		if n, err := strconv.ParseUint(part, 10, 31); err == nil && workshop.ReservedID(int(n)) {
			return true
		}
	}
	return false
}

// numericUser tells whether a user is "", UID or UID:GID.
func numericUser(user string) bool {
	if user == "" {
		return true
	}
	uid, gid, both := strings.Cut(user, ":")
	number := func(s string) bool { _, err := strconv.ParseUint(s, 10, 31); return err == nil }
	return number(uid) && (!both || number(gid))
}

// execError is a command that was not started.
func (a *program) execError(ctx context.Context, err error, t app.ProjectRef, worker, program, workdir string) error {
	if _, ok := errors.AsType[*engine.ForeignError](err); ok {
		return app.EngineError(err)
	}
	if f := sessionFailure(err, worker, program, workdir); f != nil {
		return f
	}
	if f := startFailure(err, program, workdir); f != nil {
		return f
	}
	e, seen, observeErr := a.Observe(ctx, t, true)
	if observeErr == nil {
		defer e.Close()
		if err := engine.CheckDirectory(seen, t.Dir); err != nil {
			return app.EngineError(err)
		}
		if err := app.Services(t, seen, []string{worker}); err != nil {
			return err
		}
		for _, c := range seen.Containers {
			if c.Service == worker && c.State != "running" {
				return app.Fail(app.CodeExecFailed, "worker %s is %s", worker, c.State).Hint("start it with `workshop up`")
			}
		}
	}
	return app.EngineError(err)
}

// startFailure knows what OCI runtimes say of a program that can't be started.
func startFailure(err error, program, workdir string) *app.Failure {
	text := err.Error()
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case has("chdir to cwd"):
		return app.Fail(app.CodeExecFailed, "--workdir %s: there is no such directory in the worker, or its user may not enter it", workdir)
	case has("executable file not found", "no such file or directory", "stat "+program):
		return app.Fail(127, "%s: not found in the worker", program)
	case has("permission denied", "exec format error", "is a directory"):
		return app.Fail(126, "%s: can't be executed in the worker", program)
	}
	return nil
}

package worker

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
)

// runOptions are the flags of run.
type runOptions struct {
	app.RunOptions
	noTTY, yes, offline bool
	timeout             time.Duration
}

// Run is the verb run.
func Run(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [FLAGS] [WORKER] [-- COMMAND [ARG...]]",
		Short: "Run one command in a sandbox of its own",
		Long: `run starts a worker for one command and removes it afterwards, with all that the
command left but files in read-write mounts. Without a command it opens a shell.

Where there is no workshop.yaml, the flags say what the command gets: by default
the programs of this machine, this directory read-only at /workspace, and no
network. Nothing in the directory is read for that. With a workshop.yaml the
command gets what WORKER gets without its ports and caches; flags may only narrow
that. --no-file ignores the file, --print shows what would be used.

Input, terminal, signals and the exit code are passed on as in ` + "`docker run --rm`" + `:
125 where the command could not be started, 126 where it is not executable, 127
where it was not found, 124 after --timeout. Any number of runs are up at the
same time, beside the workshop itself. Watched files (see down) that the command
changed are named at the end.`,
		Example: `  workshop run -- ls -l
  workshop run --rw . --allow preset:npm -- npm install
  workshop run --rw ./out --memory 512M -- make
  workshop run reviewer -- npm test
  workshop run --image alpine -- sh -c 'cat /etc/os-release'`,
		ValidArgsFunction: a.CompleteWorkers(1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			switch {
			case cmd.ArgsLenAtDash() == 0:
				o.Command = args
			case len(args) > 0:
				o.Worker, o.Command = args[0], args[1:]
				if len(o.Command) > 0 && o.Command[0] == "--" {
					o.Command = o.Command[1:]
				}
			}
			if cmd.Flags().Changed("timeout") {
				o.Timeout = o.timeout.String()
			}
			return a.run(ctx, cmd, &o)
		}),
		Args:        cobra.ArbitraryArgs,
		Annotations: command.PassesExitCode(),
	}
	o.flags(cmd)
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (o *runOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Image, "image", "", "image of the worker (default: host, this machine's programs)")
	f.StringArrayVar(&o.ReadOnly, "ro", nil, "mount `PATH[:TARGET]` read-only (repeatable)")
	f.StringArrayVar(&o.ReadWrite, "rw", nil, "mount `PATH[:TARGET]` read-write (repeatable)")
	f.StringArrayVar(&o.Allow, "allow", nil, "let it reach `HOST[:PORT]`, or preset:NAME (repeatable)")
	f.StringArrayVar(&o.Deny, "deny", nil, "never let it reach `HOST[:PORT]` (repeatable)")
	f.BoolVar(&o.Private, "private", false, "names of --allow may have private addresses")
	f.StringVar(&o.Network, "network", "", "none, restricted or open")
	f.StringArrayVarP(&o.Env, "env", "e", nil, "NAME=VALUE, or NAME to pass on yours (repeatable)")
	f.StringArrayVar(&o.Secrets, "secret", nil, "file /run/secrets/NAME from your variable NAME, or from `NAME[=FILE]` (repeatable)")
	f.StringArrayVar(&o.PublishPorts, "publish", nil, "publish a port on this machine, as `[ADDRESS:]PORT:PORT` (repeatable)")
	f.StringVarP(&o.Memory, "memory", "m", "", "limit of memory, such as 512M")
	f.StringVar(&o.CPUs, "cpus", "", "limit of cpu cores, such as 1.5")
	f.StringVar(&o.PIDs, "pids", "", "limit of processes and threads")
	f.DurationVar(&o.timeout, "timeout", 0, "end the command after this time, such as 10m")
	f.StringVarP(&o.Workdir, "workdir", "w", "", "directory to run in")
	f.BoolVarP(&o.noTTY, "no-tty", "T", false, "no terminal, even if there is one")
	f.BoolVar(&o.NoFile, "no-file", false, "ignore workshop.yaml")
	f.BoolVar(&o.Print, "print", false, "print the workshop.yaml of the run, and run nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "build images without asking")
	f.BoolVar(&o.offline, "offline", false, "fetch no source: only the vendor directory and the cache have them")
	f.Duration("wait-timeout", app.DefaultWaitTimeout, "how long to wait until the worker is ready")
	f.Bool("secrets-on-disk", false, "keep secrets on disk until the end, where there is no memory file system")
	command.FrozenFlag(cmd)
	command.CredentialFlags(cmd)
	f.Bool("without-limits", false, "go on where this machine enforces no limits of memory, cpu and processes (B5)")
	f.Bool("rm", true, "accepted as in Compose, and what run always does")
	_ = f.MarkHidden("rm")
	_ = cmd.RegisterFlagCompletionFunc("network", cobra.FixedCompletions([]string{"none", "restricted", "open"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("ro")
	_ = cmd.MarkFlagFilename("rw")
	for _, it := range [][2]string{{"interactive", "i"}, {"tty", "t"}} { // fingers type `run -it`
		f.BoolP(it[0], it[1], true, "accepted as in Compose")
		_ = f.MarkHidden(it[0])
	}
}

func (a verbs) run(ctx context.Context, cmd *cobra.Command, o *runOptions) error {
	shell := len(o.Command) == 0
	a.Offline = o.offline
	p, err := a.LoadRun(ctx, &o.RunOptions)
	if err != nil {
		return err
	}
	if shell && !o.Print && (o.noTTY || !terminal.Is(a.In) || !terminal.Is(a.Out)) {
		return command.UsageError(cmd, "run: argument missing: the command, after -- (a shell needs a terminal)")
	}
	if o.Print {
		return a.printRun(p)
	}
	if grant := p.RunGrant(); grant != "" && terminal.Is(a.Err) {
		a.Say("%s", grant)
	}
	argv := o.Command
	if shell {
		argv = []string{"sh", "-c", shellLine}
	}
	defer a.Interrupts.Hangup()()
	run, err := a.StartRun(ctx, p, a.Approver("workshop run", o.yes), a.Asker())
	if err != nil {
		return err
	}
	err = a.execIn(ctx, run.Running, run.Worker, argv, execOptions{
		noTTY: o.noTTY, timeout: o.timeout, hint: !shell, refused: shell,
	})
	if ended := run.End(ctx); ended != nil {
		a.Warn("%v", ended)
		for _, h := range app.Hints(ended) {
			a.Hint("%s", h)
		}
	}
	return err
}

func (a verbs) printRun(p *app.Project) error {
	text, resolved := a.RunText(p)
	if resolved != nil {
		return a.WriteYAML(resolved)
	}
	_, err := a.Out.Write(text)
	return err
}

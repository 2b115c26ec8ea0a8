package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// NewWorkshop makes the root of the program workshop.
func NewWorkshop(sys *System) *cobra.Command {
	root := workshopCommand(sys)
	asRoot(root)
	return root
}

// NewLLMDo makes the root of the program llmdo: the same commands one level
// below.
func NewLLMDo(sys *System) *cobra.Command {
	root := &cobra.Command{
		Use:   "llmdo",
		Short: "Run LLM workers in closed rooms",
		Args:  cobra.ArbitraryArgs,
		RunE:  unknownCommand,
	}
	asRoot(root)
	sys.under = "llmdo "
	root.AddCommand(workshopCommand(sys))
	return root
}

// workshopCommand is the tree that both programs share.
func workshopCommand(sys *System) *cobra.Command {
	a := newProgram(sys)
	cmd := &cobra.Command{
		Use:   "workshop",
		Short: "Compose-style rooms for the tools of LLM workers",
		Long: `workshop turns a workshop.yaml into a hardened Compose project and runs it:
each worker gets the files, limits and network names that the file grants,
and nothing else.`,
		Example: `  workshop init                      # write a first workshop.yaml
  workshop validate                  # all problems at once, no engine needed
  workshop up                        # start it and wait until it is usable
  workshop exec greeter -- ls -l     # run a command in a worker
  workshop down                      # remove it`,
		Args: cobra.ArbitraryArgs,
		RunE: unknownCommand,
	}
	cmd.Example = a.commands(cmd.Example)
	a.globals.add(cmd.Flags(), true)
	for _, g := range groups {
		cmd.AddGroup(&g)
	}
	for _, c := range a.verbs() {
		cmd.AddCommand(c)
		if sys.names(c) {
			a.prepareVerb(c)
		}
	}
	cmd.SetHelpCommandGroupID("more")
	cmd.SetCompletionCommandGroupID("more")
	return cmd
}

// prepareVerb gives a command, and those below it, what all have.
func (a *program) prepareVerb(c *cobra.Command) {
	a.globals.add(c.Flags(), c.Flags().ShorthandLookup("f") == nil)
	completeFlags(c)
	c.Flags().SortFlags = false
	c.Example = a.commands(c.Example)
	c.DisableFlagsInUseLine = true
	if c.Args == nil {
		c.Args = usageArgs(0, 0)
	}
	for _, below := range c.Commands() {
		a.prepareVerb(below)
	}
}

// groups order the list of commands in --help.
var groups = []cobra.Group{
	{ID: "write", Title: "Write and check a workshop:"},
	{ID: "run", Title: "Run it:"},
	{ID: "use", Title: "Work in it:"},
	{ID: "more", Title: "More:"},
}

func (a *program) verbs() []*cobra.Command {
	in := func(group string, cmds ...*cobra.Command) []*cobra.Command {
		for _, c := range cmds {
			c.GroupID = group
		}
		return cmds
	}
	var all []*cobra.Command
	all = append(all, in("write", a.initCommand(), a.validateCommand(), a.configCommand(), a.compileCommand(), a.presetsCommand(), a.checkResultCommand())...)
	all = append(all, in("run", a.upCommand(), a.downCommand(), a.psCommand(), a.logsCommand(), a.restartCommand())...)
	all = append(all, in("use", a.execCommand(), a.shellCommand(), a.cpCommand(), a.firewallCommand(), a.callCommand(), a.toolsCommand())...)
	return append(all, in("more", a.capabilitiesCommand(), a.versionCommand())...)
}

// asRoot sets what belongs to the root of a program.
func asRoot(root *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	// The global flags stand at every level, so that `workshop -f F logs -f`
	// works, where the second -f is --follow as in Compose.
	root.TraverseChildren = true
	root.SetUsageFunc(usage)
	addVersionFlag(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, "%w", err)
	})
}

// ofCompose says what does the work of Compose's commands that aren't here.
var ofCompose = map[string]string{
	"stop":  "`workshop down` ends a workshop; what it needs is made again by `workshop up`",
	"kill":  "`workshop down` ends a workshop; `workshop restart` starts its workers anew",
	"rm":    "`workshop down` removes a workshop",
	"start": "`workshop up` starts what doesn't run",
	"run":   "`workshop up` starts the workers, `workshop exec WORKER -- COMMAND` runs a command in one",
	"build": "`workshop up` builds and pulls the images that it needs",
	"pull":  "`workshop up` builds and pulls the images that it needs",
	"ls":    "`workshop ps` shows the workshop of this directory",
	"top":   "`workshop exec WORKER -- ps` shows the processes of a worker",
}

// unknownCommand runs where a word is no command; without a word it is help.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := app.Fail(app.CodeUsage, "unknown command %q", args[0])
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if do := ofCompose[args[0]]; do != "" && cmd.Name() == "workshop" {
		f.Hint("%s", do)
	} else if near := app.Nearest(args[0], names); near != "" {
		f.Hint("did you mean `%s %s`?", cmd.CommandPath(), near)
	}
	return f.Hint("run `%s --help` for the list of commands", cmd.CommandPath())
}

// usageError is a wrong command line.
func usageError(cmd *cobra.Command, format string, args ...any) *app.Failure {
	return app.Fail(app.CodeUsage, format, args...).Hint("run `%s --help`", cmd.CommandPath())
}

// usageArgs checks the number of arguments; max < 0 means any number.
func usageArgs(min, max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		use := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
		switch {
		case len(args) < min:
			return usageError(cmd, "%s: argument missing: %s", cmd.Name(), strings.TrimSpace(strings.TrimPrefix(use, " [FLAGS]")))
		case max >= 0 && len(args) > max:
			return usageError(cmd, "%s: unexpected argument %q", cmd.Name(), args[max])
		}
		return nil
	}
}

// command is the command line that a hint can offer, for the program that runs.
func commandLine(cmd *cobra.Command, format string, args ...any) string {
	path := cmd.CommandPath()
	if i := strings.LastIndexByte(path, ' '); i >= 0 {
		path = path[:i]
	}
	return path + " " + fmt.Sprintf(format, args...)
}

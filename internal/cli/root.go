package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/check"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/credential"
	"github.com/llmdo/workshop/internal/cli/firewall"
	"github.com/llmdo/workshop/internal/cli/lifecycle"
	"github.com/llmdo/workshop/internal/cli/model"
	"github.com/llmdo/workshop/internal/cli/tools"
	"github.com/llmdo/workshop/internal/cli/worker"
)

// NewWorkshop makes the root of the program workshop.
func NewWorkshop(sys *command.System) *cobra.Command {
	root := workshopCommand(command.NewProgram(sys))
	asRoot(root, sys)
	return root
}

// NewLLMDo makes the root of the program llmdo: the same commands one level
// below, and those about models.
func NewLLMDo(sys *command.System) *cobra.Command {
	root := &cobra.Command{
		Use:   "llmdo",
		Short: "Run LLM workers in closed rooms",
		Args:  cobra.ArbitraryArgs,
		RunE:  command.Unknown,
	}
	asRoot(root, sys)
	sys.Under = "llmdo "
	p := command.NewProgram(sys)
	models := model.Command(p)
	if mayRun(sys, models) {
		prepareVerb(p, models)
	}
	root.AddCommand(workshopCommand(p), models)
	return root
}

// workshopCommand is the tree that both programs share.
func workshopCommand(p *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workshop",
		Short: "Compose-style rooms for the tools of LLM workers",
		Long: `workshop turns a workshop.yaml into a hardened Compose project and runs it:
each worker gets the files, limits and network names that the file grants.
Anything the file doesn't grant is unavailable.`,
		Example: `  workshop init                      # write a first workshop.yaml
  workshop validate                  # report all problems, without an engine
  workshop up                        # start it and wait until it is usable
  workshop exec greeter -- ls -l     # run a command in a worker
  workshop down                      # remove it`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Unknown,
	}
	cmd.Example = p.Pasteable(cmd.Example)
	p.AddGlobalFlags(cmd.Flags(), true)
	p.CompleteFlags(cmd)
	for _, g := range groups {
		cmd.AddGroup(&g)
	}
	for _, c := range verbs(p) {
		cmd.AddCommand(c)
		if mayRun(p.System, c) {
			prepareVerb(p, c)
		}
	}
	cmd.SetHelpCommandGroupID("more")
	cmd.SetCompletionCommandGroupID("more")
	return cmd
}

// prepareVerb gives a command, and those below it, what all have.
func prepareVerb(p *command.Program, c *cobra.Command) {
	p.AddGlobalFlags(c.Flags(), c.Flags().ShorthandLookup("f") == nil)
	p.CompleteFlags(c)
	c.Flags().SortFlags = false
	c.Example = p.Pasteable(c.Example)
	c.DisableFlagsInUseLine = true
	if c.Args == nil {
		c.Args = command.Args(0, 0)
	}
	c.Args = command.OneOfFlags(c.Args)
	for _, below := range c.Commands() {
		prepareVerb(p, below)
	}
}

// groups order the list of commands in --help.
var groups = []cobra.Group{
	{ID: "write", Title: "Write and check a workshop:"},
	{ID: "run", Title: "Run it:"},
	{ID: "use", Title: "Work in it:"},
	{ID: "more", Title: "More:"},
}

// verbs are all commands, each with its group.
func verbs(p *command.Program) []*cobra.Command {
	in := func(group string, cmds ...*cobra.Command) []*cobra.Command {
		for _, c := range cmds {
			c.GroupID = group
		}
		return cmds
	}
	return slices.Concat(
		in("write", check.Init(p), check.Validate(p), check.Config(p), check.Compile(p), check.Lock(p), check.Diff(p), check.Add(p), check.Update(p), check.Why(p), check.Vendor(p), check.Publish(p), firewall.Presets(p), check.Result(p), check.Schema(p)),
		in("run", lifecycle.Up(p), lifecycle.Down(p), lifecycle.Ls(p), lifecycle.Ps(p), lifecycle.Logs(p), lifecycle.Restart(p), lifecycle.Port(p), lifecycle.Ports(p), lifecycle.Wait(p), lifecycle.Prune(p), lifecycle.Broker(p), model.Serve(p),
			worker.Run(p)),
		in("use", worker.Exec(p), worker.Shell(p), worker.Cp(p), firewall.Command(p), tools.Call(p), tools.Command(p), tools.MCP(p)),
		in("more", credential.Command(p), check.Explain(p), check.Doctor(p), check.Capabilities(p), check.Verify(p), check.VM(p), versionCommand(p)),
	)
}

// mayRun reports whether the command line may be one of this verb: then the verb
// has its name among the words. The flags of the others are never looked at,
// and are 7% of what a start executes.
func mayRun(sys *command.System, verb *cobra.Command) bool {
	return sys.Args == nil || slices.Contains(sys.Args, verb.Name())
}

// asRoot sets what belongs to the root of a program.
func asRoot(root *cobra.Command, sys *command.System) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	// The global flags are at every level, so that `workshop -f F logs -f`
	// works, where the second -f is --follow as in Compose.
	root.TraverseChildren = true
	root.SetUsageFunc(func(cmd *cobra.Command) error { return usage(sys, cmd, cmd.OutOrStderr()) })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(sys, cmd) })
	addVersionFlag(root, sys)
	root.SetFlagErrorFunc(command.FlagError)
}

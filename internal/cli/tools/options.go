package tools

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/session/approval"
)

// options are the flags of tools and call.
type options struct {
	app.ToolsOptions
	structured bool // of tools alone
}

func (o *options) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.ApproveAll, "approve-all", false, "run what the workshop asks about without asking")
	f.BoolVar(&o.Strict, "strict", false, "refuse what the workshop asks about without asking")
	f.BoolVar(&o.NoUp, "no-up", false, "don't start a workshop that isn't up")
	f.BoolVarP(&o.Yes, "yes", "y", false, "build images without asking, where it must be started")
	command.FrozenFlag(cmd)
	command.CredentialFlags(cmd)
}

func (o *options) check(cmd *cobra.Command) error {
	if o.ApproveAll && o.Strict {
		return command.UsageError(cmd, "--approve-all and --strict exclude each other")
	}
	return nil
}

// openTools reads the workshop and opens the audit log. It touches no engine
// yet.
func (a verbs) openTools(ctx context.Context, worker string, o options) (*app.Tools, error) {
	c, err := a.CompileToRun(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	if worker != "" {
		if err := c.CheckWorkers([]string{worker}); err != nil {
			return nil, err
		}
		names = c.WithDelegates(worker)
	}
	return a.OpenTools(ctx, c, names, o.ToolsOptions)
}

// terminalAsker asks the person at the terminal that controls this process, also
// where the input is piped; nil where there is none.
func (a verbs) terminalAsker() approval.Asker {
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		return &approval.Terminal{In: tty, Out: tty} // open until the process ends
	}
	if in, ok := a.In.(*os.File); ok && terminal.Is(in) {
		return &approval.Terminal{In: in, Out: a.Err}
	}
	return nil
}

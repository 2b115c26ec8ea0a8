package lifecycle

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/lib/durationtext"
)

// How long a room learns.
const (
	defaultLearn = 30 * time.Minute
	maxLearn     = 24 * time.Hour
)

// learnOptions are the flags of `up --learn`.
type learnOptions struct {
	on          bool
	lasts       time.Duration
	withSecrets bool
}

func (o *learnOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.on, "learn", false, "let names pass that no line allows, and record them")
	f.DurationVar(&o.lasts, "for", defaultLearn, "with --learn: how long, at most 24h")
	f.BoolVar(&o.withSecrets, "with-secrets", false, "with --learn: although a worker has secrets")
}

// check is about the command line alone.
func (o *learnOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"for", "with-secrets"} {
		if !o.on && cmd.Flags().Changed(name) {
			return command.UsageError(cmd, "--%s belongs to --learn", name)
		}
	}
	if o.lasts < time.Second || o.lasts > maxLearn {
		return command.UsageError(cmd, "--for %s: from a second to %s", durationtext.Of(o.lasts), durationtext.Of(maxLearn))
	}
	return nil
}

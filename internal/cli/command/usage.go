package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
)

// ofCompose says what does the work of Compose's commands that aren't here.
var ofCompose = map[string]string{
	"attach": "`workshop shell WORKER` opens a shell in a worker",
	"create": "`workshop up` creates and starts the workers",
	"events": "`workshop logs -f` follows the logs, `workshop firewall log -f` what the guard allows and refuses",
	"stop":   "`workshop down` stops and removes a workshop; `workshop up` recreates it",
	"kill":   "`workshop down` stops and removes a workshop; `workshop restart` restarts its workers",
	"rm":     "`workshop down` removes a workshop",
	"start":  "`workshop up` starts what isn't running",
	"run":    "`workshop up` starts the workers, `workshop exec WORKER -- COMMAND` runs a command in one",
	"build":  "`workshop up` builds and pulls the images that it needs",
	"pull":   "`workshop up` builds and pulls the images that it needs",
	"ls":     "`workshop ps` shows the workshop of this directory",
	"wait":   "`workshop up` returns when every worker is ready",
	"port":   "`workshop ps` shows published ports",
	"top":    "`workshop exec WORKER -- ps` shows the processes of a worker",
}

// Unknown runs where a word is not a command; without a word it prints help.
func Unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := app.Fail(app.CodeUsage, "unknown command %q", args[0])
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if do := ofCompose[args[0]]; do != "" && cmd.Name() == "workshop" {
		return f.Hint("%s", do)
	} else if near := app.Nearest(args[0], names); near != "" {
		return f.Hint("did you mean `%s %s`?", cmd.CommandPath(), near)
	}
	return f.Hint("run `%s --help` for the list of commands", cmd.CommandPath())
}

// UsageError is a wrong command line.
func UsageError(cmd *cobra.Command, format string, args ...any) *app.Failure {
	return app.Fail(app.CodeUsage, format, args...).Hint("run `%s --help`", cmd.CommandPath())
}

// Args checks the number of arguments; max < 0 means any number.
func Args(min, max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		use := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
		switch {
		case len(args) < min:
			return UsageError(cmd, "%s: argument missing: %s", cmd.Name(), strings.TrimSpace(strings.TrimPrefix(use, " [FLAGS]")))
		case max >= 0 && len(args) > max:
			return UsageError(cmd, "%s: unexpected argument %q", cmd.Name(), args[max])
		}
		return nil
	}
}

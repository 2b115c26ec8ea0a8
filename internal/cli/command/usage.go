package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	"build":  "`workshop up` builds and pulls the images that it needs",
	"pull":   "`workshop up` builds and pulls the images that it needs",
	"top":    "`workshop exec WORKER -- ps` shows the processes of a worker",
}

// flagsOfCompose says what does the work of flags of Compose's commands that aren't here,
// by command and flag without dashes.
var flagsOfCompose = map[string]map[string]string{
	"up": {
		"build":          "`workshop up` builds images whose files changed; `--yes` builds without asking",
		"force-recreate": "`workshop up` recreates workers that changed; to recreate all, run `workshop down`, then `workshop up`",
		"pull":           "write `pull: always` in the container in workshop.yaml, then run `workshop up`",
		"remove-orphans": "`workshop up` removes workers that workshop.yaml doesn't have any more",
		"wait":           "`workshop up` always waits until every worker is ready",
	},
	"down": {
		"remove-orphans": "`workshop down` removes all workers of the project",
	},
	"run": {
		"d":             "a run ends with its command; `workshop up` starts workers that go on",
		"detach":        "a run ends with its command; `workshop up` starts workers that go on",
		"entrypoint":    "the command comes after --, and no entrypoint is run",
		"mount":         hintMounts,
		"name":          "runs have names of their own; -p names the workshop",
		"pids-limit":    "it is --pids here",
		"privileged":    "nothing in a worker is privileged: `workshop explain B2`",
		"service-ports": "publish a port with --publish",
		"user":          "a command runs as you, never as root",
		"u":             "a command runs as you, never as root",
		"volume":        hintMounts,
	},
	"exec": {
		"d":          execDetached,
		"detach":     execDetached,
		"privileged": "nothing in a worker is privileged: `workshop explain B2`",
	},
}

// hintMounts says how `workshop run` mounts.
const hintMounts = "mount with `--ro PATH[:TARGET]`, or `--rw PATH[:TARGET]` to write there"

const execDetached = "leave it in the background of the worker: `workshop exec WORKER -- sh -c 'COMMAND >/tmp/log 2>&1 &'`"

// FlagError is a command line with a flag that isn't one of the command's.
func FlagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if do := flagsOfCompose[cmd.Name()][e.GetSpecifiedName()]; do != "" {
			return app.Fail(app.CodeUsage, "%w", err).Hint("%s", do)
		}
		if args := cmd.Flags().Args(); cmd.Name() == "workshop" && len(args) > 0 && ofCompose[args[0]] != "" { // `run --rm`
			return Unknown(cmd, args)
		}
	}
	return UsageError(cmd, "%w", err)
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

// OneOfFlags refuses flags that exclude each other as a wrong command line, which cobra
// doesn't, before it looks at the arguments.
func OneOfFlags(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if err := cmd.ValidateFlagGroups(); err != nil {
			return UsageError(cmd, "%w", err)
		}
		return args(cmd, words)
	}
}

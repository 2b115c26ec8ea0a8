package check

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/schemas"
)

var schemaTexts = map[string][]byte{
	"workshop": schemas.Workshop, "policy": schemas.Policy, "diagnostics": schemas.Diagnostics,
	"event": schemas.Event, "audit": schemas.Audit, "approval": schemas.Approval,
	"verify": schemas.Verify,
}

// Schema is the verb schema.
func Schema(p *command.Program) *cobra.Command {
	a := verbs{p}
	names := slices.Sorted(maps.Keys(schemaTexts))
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of workshop.yaml, or of an output",
		Long: `schema prints the JSON Schema of workshop.yaml, by which editors complete and
check the file. The other names are approval (what a program that approves is
asked, and answers), audit (a line of the audit of calls), diagnostics
(validate --format json), event (a line of the guard's log), policy (what the
guard enforces) and verify (verify --format json).

An editor with the YAML language server finds the schema by the first line that
` + "`init`" + ` writes. To use this program's own, replace the address in that line by
the file's name.`,
		Example: `  workshop schema > workshop.schema.json
  workshop schema event`,
		Args: command.Args(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return command.Beginning(prefix, nil, names), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.Run(func(_ context.Context, _ *cobra.Command, args []string) error {
			name := "workshop"
			if len(args) > 0 {
				name = args[0]
			}
			text, ok := schemaTexts[name]
			if !ok {
				return app.Fail(app.CodeUsage, "no schema %q", name).Hint("%s", app.Suggestion(name, names))
			}
			_, err := a.Out.Write(text)
			return err
		}),
	}
}

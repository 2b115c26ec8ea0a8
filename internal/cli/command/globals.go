package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globals are the flags that every command has. Their values are read through
// [settings], which adds the environment and the user's file.
type globals struct {
	file     string
	project  string
	engine   string
	format   string
	quiet    bool
	noColor  bool
	verbose  bool
	envFiles []string
	// forceProcess allows process mode in continuous integration, where its warning is not seen.
	forceProcess bool
}

// AddGlobalFlags defines the flags that every command has; fileShorthand is false
// for the command whose own -f means something else, as in Compose.
func (a *Program) AddGlobalFlags(f *pflag.FlagSet, fileShorthand bool) {
	g := &a.globals
	short := ""
	if fileShorthand {
		short = "f"
	}
	f.StringVarP(&g.file, "file", short, g.file, "the workshop file (default: workshop.yaml here or above)")
	f.StringVarP(&g.project, "project-name", "p", g.project, "name on the engine (default: the workshop's name)")
	f.StringVar(&g.engine, "engine", g.engine, "the engine that runs the workshop: auto, docker, podman, namespace or process")
	f.StringVar(&g.engine, "isolation", g.engine, "another name of --engine, as in the file")
	f.BoolVar(&g.forceProcess, "force-process", false, "allow process mode in continuous integration")
	f.StringVar(&g.format, "format", g.format, "form of the output, as the command offers it")
	f.BoolVarP(&g.quiet, "quiet", "q", g.quiet, "only results and errors")
	f.BoolVar(&g.noColor, "no-color", g.noColor, "plain text on a terminal too")
	f.BoolVarP(&g.verbose, "verbose", "v", g.verbose, "say more")
	f.StringArrayVar(&g.envFiles, "env-file", nil, "file of variables, in addition to .env (repeatable)")
}

// IsGlobalFlag reports whether every command has a flag of this name.
func IsGlobalFlag(name string) bool {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Program).AddGlobalFlags(f, false)
	return f.Lookup(name) != nil
}

// CredentialFlags adds --credentials and --accept-credentials, which [app.Settings] has.
func CredentialFlags(cmd *cobra.Command) {
	cmd.Flags().String("credentials", "", "`FILE` of your credentials in place of credentials.yaml among your settings")
	cmd.Flags().String("accept-credentials", "", "agree that the lines with the `DIGEST` that a refused command printed have your credentials")
	_ = cmd.MarkFlagFilename("credentials", "yaml", "yml")
	FreeText(cmd, "accept-credentials")
}

// FrozenFlag adds --frozen, which [app.Settings] has.
func FrozenFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("frozen", false, "refuse whatever workshop.lock doesn't say (B46); default in continuous integration where there is one")
}

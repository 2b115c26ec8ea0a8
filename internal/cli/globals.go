package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmdo/workshop/internal/app"
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
	// forceProcess allows process mode where nobody is there to see its warning.
	forceProcess bool
}

// add defines the flags on one command; fileShorthand is false for the
// command whose own -f means something else, as in Compose.
func (g *globals) add(f *pflag.FlagSet, fileShorthand bool) {
	short := ""
	if fileShorthand {
		short = "f"
	}
	f.StringVarP(&g.file, "file", short, g.file, "the workshop file (default: workshop.yaml here or above)")
	f.StringVarP(&g.project, "project-name", "p", g.project, "name on the engine (default: the workshop's name)")
	f.StringVar(&g.engine, "engine", g.engine, "the engine that runs the workshop: auto, docker, namespace or process")
	f.StringVar(&g.engine, "isolation", g.engine, "another name of --engine, as in the file")
	f.BoolVar(&g.forceProcess, "force-process", false, "allow process mode in continuous integration")
	f.StringVar(&g.format, "format", g.format, "form of the output, as the command offers it")
	f.BoolVarP(&g.quiet, "quiet", "q", g.quiet, "only results and errors")
	f.BoolVar(&g.noColor, "no-color", g.noColor, "plain text on a terminal too")
	f.BoolVarP(&g.verbose, "verbose", "v", g.verbose, "say more")
	f.StringArrayVar(&g.envFiles, "env-file", nil, "variables, beside .env (repeatable)")
}

// globalFlags are the names that [globals.add] defines.
var globalFlags = []string{"file", "project-name", "engine", "isolation", "force-process", "format", "quiet", "no-color", "verbose", "env-file"}

// program is what the verbs share: the system, the flags and, once a command
// runs, its settings.
type program struct {
	*System
	globals globals
	set     settings
	steps   progress // of the plan that is carried out
}

// newProgram takes what use cases say to the terminal.
func newProgram(sys *System) *program {
	a := &program{System: sys}
	if a.Env == nil {
		a.Env = &app.Env{} // only help is asked for
	}
	a.Events = a.show
	return a
}

// runFunc is a verb's work.
type runFunc func(ctx context.Context, cmd *cobra.Command, args []string) error

// run makes cobra's form of a verb: settings first, then the work.
func (a *program) run(do runFunc) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.begin != nil {
			a.begin()
		}
		if a.interactive() {
			a.AgreeBuild = a.agreeBuild
		}
		if err := a.readSettings(cmd); err != nil {
			return err
		}
		return do(cmd.Context(), cmd, args)
	}
}

// formats are the output forms that commands offer, the default first, by the
// command's words behind "workshop".
var formats = map[string][]string{
	"call":             {"text", "json"},
	"capabilities":     {"text", "json"},
	"config":           {"yaml", "json"},
	"firewall explain": {"text", "json"},
	"firewall log":     {"text", "json"},
	"firewall show":    {"text", "json", "iptables"},
	"firewall suggest": {"yaml", "json"},
	"presets":          {"text", "json"},
	"ps":               {"table", "json"},
	"validate":         {"text", "json", "sarif", "github"},
	"check-result":     {"text", "json", "sarif", "github"},
	"version":          {"text", "json"},
}

// verbName is a command's words behind "workshop": "ps", "firewall show".
func verbName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), "workshop ")
	return name
}

// formatOf gives the output form: --format if it was given (an unknown one is
// an error), else the user's default if the command has it, else the first.
func (a *program) formatOf(cmd *cobra.Command) (string, error) {
	offered := formats[verbName(cmd)]
	if slices.Contains(offered, a.set.format) {
		return a.set.format, nil
	}
	if a.set.formatGiven {
		return "", usageError(cmd, "--format %q: %s offers %s", a.set.format, verbName(cmd), strings.Join(offered, ", "))
	}
	return offered[0], nil
}

package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/workshop"
)

// Program is what the verbs share: the system, the flags and, once a command
// runs, its settings.
type Program struct {
	*System
	globals globals
	set     settings
	steps   terminal.Progress // of the plan that is carried out
	// Changes are what plans did to workers. They are said after each plan, unless
	// the verb says them itself.
	Changes     app.Changes
	KeepChanges bool
}

// NewProgram takes what use cases say to the terminal.
func NewProgram(sys *System) *Program {
	a := &Program{System: sys}
	if a.Env == nil {
		a.Env = &app.Env{} // only help is asked for
	}
	a.Events = a.show
	if a.Executable != "" {
		a.Self = []string{a.Executable}
		if a.Under != "" { // llmdo, or the docker command's plugin
			a.Self = append(a.Self, "workshop")
		}
	}
	return a
}

// RunFunc is a verb's work.
type RunFunc func(ctx context.Context, cmd *cobra.Command, args []string) error

// Run makes cobra's form of a verb: settings first, then the work.
func (a *Program) Run(do RunFunc) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.Interrupts.Watch()
		a.ShowSources = a.showSources
		if a.interactive() {
			a.AgreeBuild, a.AgreeSources, a.AgreeCredentials = a.agreeBuild, a.agreeSources, a.agreeCredentials
		}
		if err := a.readSettings(cmd); err != nil {
			return err
		}
		return do(cmd.Context(), cmd, args)
	}
}

// EngineGiven is the engine that the command line names; empty: none, or any.
func (a *Program) EngineGiven() string {
	if a.globals.engine == string(workshop.IsolationAuto) {
		return ""
	}
	return a.globals.engine
}

// FileGiven reports whether the command line names the workshop file.
func (a *Program) FileGiven() bool { return a.globals.file != "" }

// RunAnyway is [Program.Run] for a verb that says itself what is wrong with the settings:
// it gets the error, and flags alone count then.
func (a *Program) RunAnyway(do func(ctx context.Context, cmd *cobra.Command, settings error) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		a.Interrupts.Watch()
		failed := a.readSettings(cmd)
		if failed != nil {
			a.Settings.Engine, a.Verbose, a.Quiet = a.globals.engine, a.globals.verbose, a.globals.quiet
			a.Settings.File, a.Settings.Project = a.globals.file, a.globals.project
			a.set = settings{format: a.globals.format, formatGiven: a.globals.format != "", noColor: a.globals.noColor}
		}
		return do(cmd.Context(), cmd, failed)
	}
}

// ProjectGiven reports whether the command line names the project.
func (a *Program) ProjectGiven() bool { return a.globals.project != "" }

package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/llmdo/workshop/internal/app"
)

// settings are those that only a terminal has; the others are [app.Settings].
type settings struct {
	format      string
	formatGiven bool // by the flag, not as a wish of the user's in general
	noColor     bool
}

// readSettings reads what the flags, the environment (WORKSHOP_*) and the user's
// config.yaml say, the first of them that says something.
func (a *Program) readSettings(cmd *cobra.Command) error {
	values, from, err := a.UserValues()
	if err != nil {
		return err
	}
	v := viper.New()
	if err := v.MergeConfigMap(values); err != nil {
		return app.Fail(app.CodeUsage, "settings: %w", err)
	}
	formatGiven := false
	for c := cmd; c != nil; c = c.Parent() {
		c.Flags().Visit(func(f *pflag.Flag) {
			key := strings.ReplaceAll(f.Name, "-", "_")
			if key == "isolation" {
				key = "engine"
			}
			if !slices.Contains(app.SettingKeys, key) || key == "env_file" {
				return
			}
			v.Set(key, f.Value.String())
			formatGiven = formatGiven || key == "format"
			if key == "engine" {
				from = app.FromCaller
			}
		})
	}
	if err := a.Set(v.AllSettings(), from); err != nil {
		return err
	}
	if len(a.globals.envFiles) > 0 {
		a.Settings.EnvFiles = a.globals.envFiles
	}
	a.Settings.ForceProcess = a.globals.forceProcess
	a.set = settings{
		format: v.GetString("format"), formatGiven: formatGiven,
		noColor: v.GetBool("no_color") || a.Getenv("NO_COLOR") != "" || a.Getenv("TERM") == "dumb",
	}
	return nil
}

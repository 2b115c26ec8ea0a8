package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
)

// settings are what the flags, the environment (WORKSHOP_*) and the user's
// config.yaml say, the first of them that says something.
type settings struct {
	file          string
	project       string
	engine        string
	format        string
	formatGiven   bool // by the flag, not as a wish of the user's in general
	quiet         bool
	noColor       bool
	verbose       bool
	envFiles      []string
	secretsOnDisk bool
	withoutLimits bool
	runtimes      []string // OCI runtimes that workers without a network may have
	waitTimeout   time.Duration
	// approvalsMax is auto, ask or deny; of the others at most one is set.
	approvalsMax, approvalsCommand, approvalsSocket string
}

// settingKeys are the keys of config.yaml; WORKSHOP_ and the key in capitals
// is the variable, except where a variable can't say it, with - for _ the flag.
var settingKeys = []string{
	"approvals_command", "approvals_max", "approvals_socket",
	"engine", "env_file", "file", "format", "no_color", "project_name",
	"quiet", "runtimes", "secrets_on_disk", "verbose", "wait_timeout", "without_limits",
}

// fileKeys are those that only make sense for one command line or directory
// and are not taken from config.yaml.
var notInFile = []string{"env_file", "file", "project_name"}

// notInEnvironment are those that give a promise up (B5, B6): who types it or
// wrote it down does that, not an environment that a project or a CI system sets.
var notInEnvironment = map[string]string{
	"runtimes":       "write `runtimes: [NAME]` in your settings file",
	"without_limits": "write `--without-limits`, or `without_limits: true` in your settings file",
}

// defaultWaitTimeout is how long `up` waits for every gate.
const defaultWaitTimeout = 60 * time.Second

func (a *program) readSettings(cmd *cobra.Command) (settings, error) {
	v := viper.New()
	v.SetDefault("wait_timeout", defaultWaitTimeout)
	v.SetDefault("approvals_max", "ask")
	if err := a.readConfigFile(v); err != nil {
		return settings{}, err
	}
	environment := map[string]any{}
	for _, key := range settingKeys {
		name := "WORKSHOP_" + strings.ToUpper(key)
		if value, ok := a.Lookup(name); ok && value != "" {
			if instead, ok := notInEnvironment[key]; ok {
				return settings{}, app.Fail(app.CodeRefused, "%s can't give a promise up", name).Hint("%s", instead)
			}
			environment[key] = value
		}
	}
	if err := v.MergeConfigMap(environment); err != nil {
		return settings{}, app.Fail(app.CodeUsage, "the WORKSHOP_ variables: %w", err)
	}
	s := settings{}
	var err error
	for c := cmd; c != nil; c = c.Parent() {
		c.Flags().Visit(func(f *pflag.Flag) {
			key := strings.ReplaceAll(f.Name, "-", "_")
			if key == "isolation" {
				key = "engine"
			}
			if !slices.Contains(settingKeys, key) || key == "env_file" {
				return
			}
			v.Set(key, f.Value.String())
			s.formatGiven = s.formatGiven || key == "format"
		})
	}
	for _, key := range []string{"quiet", "no_color", "verbose", "secrets_on_disk", "without_limits"} {
		if value := strings.ToLower(v.GetString(key)); value != "" && !slices.Contains([]string{"true", "false", "0", "1"}, value) {
			return settings{}, app.Fail(app.CodeUsage, "setting %s: %q is neither true nor false", key, value)
		}
	}
	s.waitTimeout = v.GetDuration("wait_timeout")
	if s.waitTimeout <= 0 {
		return settings{}, app.Fail(app.CodeUsage, "wait timeout %q is no duration above zero", v.GetString("wait_timeout")).
			hint("write it like 90s or 2m")
	}
	s.approvalsMax = v.GetString("approvals_max")
	if err = checkApprovalsMax(s.approvalsMax); err != nil {
		return settings{}, app.Fail(app.CodeUsage, "setting approvals_max: %q: %w", s.approvalsMax, err)
	}
	s.approvalsCommand, s.approvalsSocket = v.GetString("approvals_command"), v.GetString("approvals_socket")
	s.file = v.GetString("file")
	s.project = v.GetString("project_name")
	if s.engine, err = a.engineSetting(v.GetString("engine"), environment["engine"] != nil); err != nil {
		return settings{}, err
	}
	s.format = v.GetString("format")
	s.quiet = v.GetBool("quiet")
	s.noColor = v.GetBool("no_color") || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb"
	s.verbose = v.GetBool("verbose")
	s.secretsOnDisk = v.GetBool("secrets_on_disk")
	s.withoutLimits = v.GetBool("without_limits")
	s.runtimes = v.GetStringSlice("runtimes")
	s.envFiles = a.globals.envFiles
	if len(s.envFiles) == 0 && v.GetString("env_file") != "" {
		s.envFiles = []string{v.GetString("env_file")}
	}
	return s, nil
}

// maxSettings bounds config.yaml, in bytes.
const maxSettings = 1 << 20

// readConfigFile reads the user's config.yaml if there is one. A key that we
// don't know is an error: a setting must not be without effect in silence.
func (a *program) readConfigFile(v *viper.Viper) error {
	dir := a.configDir()
	if dir == "" {
		return nil
	}
	path := filepath.Join(dir, "config.yaml")
	data, err := boundedfile.Read(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return app.Fail(app.CodeUsage, "settings: %w", err)
	}
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return app.Fail(app.CodeUsage, "settings: %s: %w", path, err)
	}
	allowed := slices.DeleteFunc(slices.Clone(settingKeys), func(k string) bool { return slices.Contains(notInFile, k) })
	for _, key := range v.AllKeys() {
		if !slices.Contains(allowed, key) {
			return app.Fail(app.CodeUsage, "settings: %s: unknown key %q", path, key).
				hint("the keys are %s", strings.Join(allowed, ", "))
		}
	}
	return nil
}

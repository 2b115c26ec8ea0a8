package app

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/trust"
)

// machineSettings is where who runs a machine says what none of its users can widen.
const machineSettings = "/etc/workshop/config.yaml"

// SourceSettings are what the machine's and the user's settings say of sources (B47). The
// user's only narrow the machine's.
func (env *Env) SourceSettings() (trust.Settings, error) {
	path := env.MachineSettings
	if path == "" {
		path = machineSettings
	}
	machine, err := saidIn(path, trust.Keys)
	if err != nil {
		return trust.Settings{}, err
	}
	user, err := saidIn(env.userSettings(), nil)
	return trust.Settings{Machine: machine, User: user}, err
}

// saidIn reads what a file says of sources; only, if given, are the keys that it may have.
func saidIn(path string, only []string) (trust.Said, error) {
	values, err := settingsIn(path)
	if err != nil {
		return trust.Said{}, err
	}
	for key := range values {
		if only != nil && !slices.Contains(only, key) {
			return trust.Said{}, Fail(CodeUsage, "settings: %s: unknown key %q", path, key).Hint("the keys are %s", strings.Join(only, ", "))
		}
	}
	said, err := trust.ParseSaid(path, values)
	if err != nil {
		return trust.Said{}, Fail(CodeUsage, "settings: %s: %w", path, err)
	}
	return said, nil
}

package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cast"
	"go.yaml.in/yaml/v3"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
)

// Settings are what the caller, the environment (WORKSHOP_*) and the user's
// config.yaml say, the first of them that says something, of how workshops are
// used.
type Settings struct {
	File, Project, Engine string
	EnvFiles              []string
	// ForceProcess allows process mode where nobody is there to see its warning.
	ForceProcess  bool
	SecretsOnDisk bool
	WithoutLimits bool
	// Frozen: what runs must be what the lock says (B46); nil: in continuous integration.
	Frozen   *bool
	Runtimes []string // OCI runtimes that workers without a network may have
	// Podman is what the user accepts of podman.
	Podman PodmanSettings
	// Kernels are the mechanisms that may give workers a kernel, in the order of preference; of
	// a kernel that isn't a key, all ([compose.Mechanisms]).
	Kernels map[workshop.Kernel][]compose.Mechanism
	// VMKit is the hash of the kit that virtual machines boot; empty: there is none.
	VMKit       string
	WaitTimeout time.Duration
	// ApprovalsMax is auto, ask or deny; of the others at most one is set.
	ApprovalsMax, ApprovalsCommand, ApprovalsSocket string
	// Credentials is the user's file of credentials; empty: where it usually is.
	// AcceptCredentials is the digest of lines that may have them, which nobody is asked about.
	Credentials, AcceptCredentials string
}

// PodmanSettings are those below the key `podman` of config.yaml.
type PodmanSettings struct {
	// CgroupV1 goes on with cgroups of version 1, where podman shows workers the names of
	// theirs (B6).
	CgroupV1 bool
}

// SettingKeys are the keys of config.yaml; WORKSHOP_ and the key in capitals
// is the variable, except where a variable can't say it, with - for _ the flag.
var SettingKeys = []string{
	"accept_credentials", "approvals_command", "approvals_max", "approvals_socket",
	"credentials", "engine", "env_file", "file", "format", "frozen", "kernels", "no_color", "podman", "project_name",
	"quiet", "runtimes", "secrets_on_disk", "verbose", "vm_kit", "wait_timeout", "without_limits",
}

// notInFile are those that only make sense for one command line or directory
// and are not taken from config.yaml.
var notInFile = []string{"accept_credentials", "credentials", "env_file", "file", "project_name"}

// NotInEnvironment are those that give a promise up (B5, B6), or what keeps one (B13, B46), or
// a credential away (B33):
// who types it or wrote it down does that, not an environment that a project or a CI system
// sets.
var NotInEnvironment = map[string]string{
	"accept_credentials": "write `--accept-credentials DIGEST`",
	"credentials":        "write `--credentials FILE`",

	"kernels":        "write `kernels: {sandboxed: [gvisor]}` in your settings file",
	"podman":         "write `podman: {cgroup_v1: true}` in your settings file",
	"vm_kit":         "run `workshop vm setup`, which writes it into your settings file",
	"runtimes":       "write `runtimes: [NAME]` in your settings file",
	"without_limits": "write `--without-limits`, or `without_limits: true` in your settings file",
}

// DefaultWaitTimeout is how long `up` waits for every gate.
const DefaultWaitTimeout = 60 * time.Second

// UserValues are what the user's config.yaml and the variables, which win, say by
// the keys of [SettingKeys], and which of them names the engine.
func (env *Env) UserValues() (values map[string]any, from EngineFrom, err error) {
	if values, err = env.configFile(); err != nil {
		return nil, 0, err
	}
	from = FromFile
	for _, key := range SettingKeys {
		name := "WORKSHOP_" + strings.ToUpper(key)
		value, ok := env.Lookup(name)
		if !ok || value == "" {
			continue
		}
		if instead, ok := NotInEnvironment[key]; ok {
			return nil, 0, Fail(CodeRefused, "%s can't give a promise up", name).Hint("%s", instead)
		}
		if key == "frozen" && !cast.ToBool(value) {
			return nil, 0, Fail(CodeRefused, "%s can't give a promise up (B46)", name).Hint("write `--frozen=false`")
		}
		if values[key] = value; key == "engine" {
			from = FromVariable
		}
	}
	return values, from, nil
}

// maxSettings bounds config.yaml, in bytes.
const maxSettings = 1 << 20

// configFile reads the user's config.yaml if there is one. A key that we
// don't know is an error: a setting must not be without effect in silence.
func (env *Env) configFile() (map[string]any, error) {
	path := env.userSettings()
	doc, err := settingsIn(path)
	if err != nil {
		return nil, err
	}
	if _, err := trust.ParseSaid(path, doc); err != nil {
		return nil, Fail(CodeUsage, "settings: %s: %w", path, err)
	}
	values := map[string]any{}
	allowed := slices.DeleteFunc(slices.Clone(SettingKeys), func(k string) bool { return slices.Contains(notInFile, k) })
	for key, value := range doc {
		if slices.Contains(trust.Keys, key) {
			continue // SourceSettings
		}
		nested := reflect.ValueOf(value).Kind() == reflect.Map && key != "podman" && key != "kernels" // of any keys
		if nested || !slices.Contains(allowed, key) {
			return nil, Fail(CodeUsage, "settings: %s: unknown key %q", path, key).
				Hint("the keys are %s", strings.Join(slices.Sorted(slices.Values(slices.Concat(allowed, trust.Keys))), ", "))
		}
		values[key] = value
	}
	return values, nil
}

// userSettings is the user's config.yaml; "" if there is nowhere to have one.
func (env *Env) userSettings() string {
	if dir := env.ConfigDir(); dir != "" {
		return filepath.Join(dir, "config.yaml")
	}
	return ""
}

// settingsIn reads a file of settings, by its keys in lower case; none has none.
func settingsIn(path string) (map[string]any, error) {
	values := map[string]any{}
	if path == "" {
		return values, nil
	}
	data, err := boundedfile.Read(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, Fail(CodeUsage, "settings: %w", err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, Fail(CodeUsage, "settings: %s: %w", path, err)
	}
	for key, value := range doc {
		lower := strings.ToLower(key)
		if _, twice := values[lower]; twice {
			return nil, Fail(CodeUsage, "settings: %s: %q is there twice", path, lower)
		}
		values[lower] = value
	}
	return values, nil
}

// podmanSettings reads the value of the key `podman`.
func podmanSettings(value any) (s PodmanSettings, err error) {
	if value == nil {
		return s, nil
	}
	keys, ok := value.(map[string]any)
	for key, value := range keys {
		accepted, isBool := value.(bool)
		if ok = isBool && key == "cgroup_v1"; !ok {
			break
		}
		s.CgroupV1 = accepted
	}
	if !ok {
		return s, Fail(CodeUsage, "setting podman: %v is not `cgroup_v1: true`", value).Hint("write `podman: {cgroup_v1: true}`, or remove the key")
	}
	return s, nil
}

// EngineFrom says who named the engine.
type EngineFrom int

// Who may name it.
const (
	FromCaller EngineFrom = iota
	FromVariable
	FromFile
)

// Set reads and checks values by the keys of [SettingKeys]; from says who named
// the engine among them.
func (env *Env) Set(values map[string]any, from EngineFrom) error {
	text := func(key string) string { return cast.ToString(values[key]) }
	for _, key := range []string{"quiet", "no_color", "verbose", "secrets_on_disk", "without_limits", "frozen"} {
		if value := text(key); value != "" && !slices.Contains([]string{"true", "false", "0", "1"}, strings.ToLower(value)) {
			return Fail(CodeUsage, "setting %s: %q is neither true nor false", key, value)
		}
	}
	s := Settings{
		File: text("file"), Project: text("project_name"), Engine: text("engine"),
		SecretsOnDisk: cast.ToBool(values["secrets_on_disk"]), WithoutLimits: cast.ToBool(values["without_limits"]),
		Runtimes: cast.ToStringSlice(values["runtimes"]), WaitTimeout: DefaultWaitTimeout,
		ApprovalsMax: "ask", ApprovalsCommand: text("approvals_command"), ApprovalsSocket: text("approvals_socket"),
		Credentials: text("credentials"), AcceptCredentials: text("accept_credentials"),
	}
	var err error
	if s.Podman, err = podmanSettings(values["podman"]); err != nil {
		return err
	}
	if s.Kernels, err = kernelSettings(values["kernels"]); err != nil {
		return err
	}
	if s.VMKit, err = kitSetting(text("vm_kit")); err != nil {
		return err
	}
	if values["wait_timeout"] != nil {
		if s.WaitTimeout = cast.ToDuration(values["wait_timeout"]); s.WaitTimeout <= 0 {
			return Fail(CodeUsage, "wait timeout %q is not a duration above zero", text("wait_timeout")).
				Hint("write it like 90s or 2m")
		}
	}
	if text("frozen") != "" {
		frozen := cast.ToBool(values["frozen"])
		s.Frozen = &frozen
	}
	if values["approvals_max"] != nil {
		s.ApprovalsMax = text("approvals_max")
	}
	if err := checkApprovalsMax(s.ApprovalsMax); err != nil {
		return Fail(CodeUsage, "setting approvals_max: %q: %w", s.ApprovalsMax, err)
	}
	if file := text("env_file"); file != "" {
		s.EnvFiles = []string{file}
	}
	env.engineFrom = from
	env.Settings, env.Quiet, env.Verbose = s, cast.ToBool(values["quiet"]), cast.ToBool(values["verbose"])
	return checkEngine(s.Engine, from)
}

// checkEngine checks what --engine, --isolation, WORKSHOP_ENGINE or the user's
// file say. Process mode gives up promises, so a variable, which a repository's
// tools may set, can't ask for it.
func checkEngine(name string, from EngineFrom) error {
	all := append([]string{string(workshop.IsolationAuto)}, promise.Engines()...)
	switch {
	case name != "" && !slices.Contains(all, name):
		by := map[EngineFrom]string{FromVariable: "WORKSHOP_ENGINE: ", FromFile: "setting engine: "}[from]
		return Fail(CodeUsage, "%sno engine %q", by, name).Hint("there are %s", strings.Join(all, ", "))
	case name == promise.Process && from == FromVariable:
		return Fail(CodeRefused, "WORKSHOP_ENGINE can't ask for process mode").
			Hint("write `--isolation process`, or `engine: process` in your settings file")
	}
	return nil
}

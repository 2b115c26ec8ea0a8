package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// Env is what a use case has of its caller: environment, directories, settings and
// engines, and where to what it says and asks goes.
type Env struct {
	// Lookup reads one variable of the environment.
	Lookup func(string) (string, bool)
	// Environ lists all of it, as [os.Environ]; nil: nothing but Lookup is known.
	Environ func() []string
	// Dir is the working directory, Home the user's; Home may be empty.
	Dir, Home string
	// Detached says that Dir isn't known to the person who reads: paths are absolute.
	Detached bool
	Settings Settings
	// engineFrom says who named Settings.Engine.
	engineFrom EngineFrom
	// Engine connects to an engine.
	Engine EngineFactory
	// Version is this program's.
	Version string
	// Events gets what a person is to see; nil: nobody does.
	Events func(Event)
	// Quiet says that nobody reads what isn't a warning: it needs no question.
	// Verbose names all of what is cut else.
	Quiet, Verbose bool
	// Warnings says which warnings of the file are said; Warned, that they were in this
	// run, with those of the machine.
	Warnings Warnings
	Warned   bool
	// RepairLock: the lock is about to be written, so what is wrong with it is no error.
	RepairLock bool
	// ResolvConf is the machine's resolv.conf; empty: where it usually is.
	ResolvConf string
	// MachineSettings is the machine's config.yaml; empty: /etc/workshop/config.yaml.
	MachineSettings string
	// Programs is where workshop-vm is looked for; nil: [initimage.ProgramDirs].
	Programs []string
	// AgreeBuild asks a person whether an image may be built; nil: nobody is there.
	AgreeBuild func(context.Context, BuildRequest) (bool, error)
	// AgreeSources asks a person about files of other repositories; nil: nobody is there.
	AgreeSources func(context.Context, []SourceRequest) (bool, error)
	// AgreeCredentials asks a person about uses of their credentials; nil: nobody is there.
	AgreeCredentials func(context.Context, []CredentialUse) (bool, error)
	// Self is the command line before a verb that starts this program again, as a broker
	// ([Env.Broker]) or for a model ([Env.ServeModel]); nil: nothing does.
	Self []string
	// ShowSources shows what is used without a question, by --yes; nil: nobody reads it.
	ShowSources func([]SourceRequest)
	// Emulate: a worker whose kernel is a virtual machine's may have one without KVM, which
	// doesn't hold B13.
	Emulate bool
	// Offline: no other repository is asked for anything.
	Offline bool
	// fetches: what is read is about to run, so that its sources are fetched where they
	// aren't there. resolver chooses what a lock will have; nil: the lock has it.
	// vendors: what is vendored may be of an older lock, and is about to be written anew.
	fetches, vendors bool
	resolver         *resolver
}

// Warnings are those of a file that a command says. Errors always are.
type Warnings int

// Which warnings: none, those of a file that is not as the last `up` noted it, or all.
const (
	WarnNone Warnings = iota
	WarnNew
	WarnAll
)

// Getenv is Lookup without the difference between empty and absent.
func (env *Env) Getenv(name string) string {
	v, _ := env.Lookup(name)
	return v
}

// Abs makes a path of the caller absolute.
func (env *Env) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(env.Dir, path)
}

// Shown is a path as the user would write it: relative where that is shorter.
func (env *Env) Shown(path string) string {
	if env.Detached {
		return path
	}
	rel, err := filepath.Rel(env.Dir, path)
	if err != nil || strings.HasPrefix(rel, "../../../") || len(rel) >= len(path) {
		return path
	}
	return rel
}

// ConfigDir, StateDir and CacheDir follow the XDG base directories on every
// system, so that one line of documentation is true everywhere. They are empty
// where there is no home directory.
func (env *Env) ConfigDir() string { return env.xdg("XDG_CONFIG_HOME", ".config") }

// StateDir is described at ConfigDir.
func (env *Env) StateDir() string { return env.xdg("XDG_STATE_HOME", ".local/state") }

// DataDir is described at ConfigDir.
func (env *Env) DataDir() string { return env.xdg("XDG_DATA_HOME", ".local/share") }

// CacheDir is described at ConfigDir.
func (env *Env) CacheDir() string { return env.xdg("XDG_CACHE_HOME", ".cache") }

func (env *Env) xdg(variable, fallback string) string {
	if dir := env.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "workshop")
	}
	if env.Home == "" {
		return ""
	}
	return filepath.Join(env.Home, filepath.FromSlash(fallback), "workshop")
}

// Places are the variables by which engines and this user's files are found, where they
// aren't the default. A program without them finds another engine, or other files.
func (env *Env) Places() map[string]string {
	out := map[string]string{}
	for variable, usual := range map[string]string{
		"DOCKER_HOST": "", "DOCKER_CONTEXT": "", "CONTAINER_HOST": "",
		"XDG_CONFIG_HOME": filepath.Join(env.Home, ".config"), "XDG_STATE_HOME": filepath.Join(env.Home, ".local", "state"),
		"XDG_CACHE_HOME": filepath.Join(env.Home, ".cache"), "XDG_RUNTIME_DIR": fmt.Sprintf("/run/user/%d", os.Getuid()),
	} {
		if value := env.Getenv(variable); value != "" && (usual == "" || filepath.Clean(value) != usual) {
			out[variable] = value
		}
	}
	return out
}

// HomeDir is the user's home directory by the environment. A relative one is
// none: settings would be read from the directory of a workshop.
func HomeDir(lookup func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if v, ok := lookup(name); ok && filepath.IsAbs(v) {
			return v
		}
	}
	return ""
}

// ciVariables are set by continuous integration, most of them to "true".
// Sources: the documentation of GitHub Actions, GitLab CI, Azure Pipelines,
// Buildkite, CircleCI, Travis, AppVeyor, Drone, Cirrus, Semaphore, Woodpecker;
// Jenkins, TeamCity and CodeBuild have no such word and are known by a name.
var ciVariables = []string{
	"CI", "CONTINUOUS_INTEGRATION", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "BUILDKITE", "CIRCLECI", "TRAVIS",
	"APPVEYOR", "DRONE", "CIRRUS_CI", "SEMAPHORE", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID",
}

// inCI names the variable by which this runs in continuous integration; "" if
// it doesn't.
func (env *Env) inCI() string {
	for _, name := range ciVariables {
		value := strings.ToLower(env.Getenv(name))
		named := strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_VERSION") || strings.HasSuffix(name, "_ID")
		if value == "true" || value == "1" || value != "" && (named || name == "CI") && value != "false" && value != "0" {
			return name
		}
	}
	return ""
}

// writeState writes one file of the user's state directory, for this user
// alone.
func writeState(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

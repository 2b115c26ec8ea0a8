package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/engine/namespace"
	"github.com/llmdo/workshop/internal/engine/process"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/initimage/initbuild"
	"github.com/llmdo/workshop/internal/promise"
)

// EngineFactory connects to the engine of that name; the empty name means the
// default.
type EngineFactory func(ctx context.Context, name string, o EngineOptions) (engine.Engine, error)

// EngineOptions is what an engine needs of its caller.
type EngineOptions struct {
	// Lookup reads the environment (DOCKER_HOST and friends).
	Lookup func(string) (string, bool)
	// ApproveBuild is asked before an image is built; nil refuses every build.
	ApproveBuild func(context.Context, BuildRequest) error
	// StateDir and CacheDir are the user's for this program; empty where there is
	// no home directory.
	StateDir, CacheDir string
	// Version is this program's.
	Version string
	// Endpoint and Context are where a project is; empty: what the environment says.
	Endpoint, Context string
	// Project is the one that it is about; empty: none.
	Project string
	// Say gets a line about what takes long; nil: nobody reads it.
	Say func(string)
	// WithoutLimits goes on where no limits can be enforced (B5).
	WithoutLimits bool
	// Podman is what the user accepts of podman.
	Podman PodmanSettings
	// Attached: what the engine starts ends with this process, where it can do that.
	Attached bool
}

// Engines connects to the engines that there are.
func Engines(ctx context.Context, name string, o EngineOptions) (engine.Engine, error) {
	compared := engine.Compared{Dir: recordsIn(o.StateDir)}
	init := initimage.Default().Else(initbuild.For(ctx, initbuild.Options{CacheDir: o.CacheDir, Lookup: o.Lookup, Say: o.Say}))
	switch name {
	case "", promise.Docker, promise.Podman:
		own := docker.Options{
			Host: o.Endpoint, Context: o.Context, Init: init, Lookup: o.Lookup, ApproveBuild: dockerBuild(o.ApproveBuild),
			WithoutLimits: o.WithoutLimits, CgroupV1: o.Podman.CgroupV1, Compared: compared,
		}
		if o.Context != "" {
			own.Host = "" // it has precedence
		}
		if name == promise.Podman {
			own.Flavour = engine.FlavourPodman
		}
		return docker.New(ctx, own)
	case promise.Namespace:
		var own namespace.Options
		if o.StateDir != "" && o.CacheDir != "" {
			own.StateDir, own.CacheDir = filepath.Join(o.StateDir, promise.Namespace), o.CacheDir
		}
		own.Init, own.Version, own.Lookup, own.Project, own.WithoutLimits = init, o.Version, o.Lookup, o.Project, o.WithoutLimits
		own.Attached, own.Say, own.Compared = o.Attached, o.Say, compared
		e, err := namespace.New(ctx, own)
		if err != nil {
			return nil, err
		}
		return e, nil
	case promise.Process:
		var own process.Options
		if o.StateDir != "" && o.CacheDir != "" {
			own.StateDir, own.CacheDir = filepath.Join(o.StateDir, promise.Process), o.CacheDir
		}
		own.Init, own.Version = init, o.Version
		return process.New(ctx, own)
	}
	return nil, Fail(CodeUsage, "no engine %q in this version", name).Hint("there are %s", strings.Join(promise.Engines(), ", "))
}

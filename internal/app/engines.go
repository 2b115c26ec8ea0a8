package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/engine/namespace"
	"github.com/llmdo/workshop/internal/engine/process"
	"github.com/llmdo/workshop/internal/promise"
)

// Engines connects to the engines that there are.
func Engines(ctx context.Context, name string, o EngineOptions) (engine.Engine, error) {
	switch name {
	case "", promise.Docker:
		return docker.New(ctx, docker.Options{Lookup: o.Lookup, ApproveBuild: dockerBuild(o.ApproveBuild)})
	case promise.Namespace:
		var own namespace.Options
		if o.StateDir != "" && o.CacheDir != "" {
			own.StateDir, own.CacheDir = filepath.Join(o.StateDir, promise.Namespace), o.CacheDir
		}
		own.Version, own.Lookup, own.Project, own.WithoutLimits = o.Version, o.Lookup, o.Project, o.WithoutLimits
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
		own.Version = o.Version
		return process.New(ctx, own)
	}
	return nil, Fail(CodeUsage, "no engine %q in this version", name).Hint("there are %s", strings.Join(promise.Engines(), ", "))
}

package app

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/internal/trust"
)

// BuildRequest is an image that an engine is about to build from files of the
// repository: its instructions run on the engine, with a network.
type BuildRequest struct {
	For        string // the workers that run it
	Context    string // directory
	Dockerfile string // path below Context
	Target     string
	Args       map[string]string
	// Digest is that of all that goes into the build.
	Digest string
	// Text is the Dockerfile.
	Text  []byte
	Files int   // that are sent
	Bytes int64 // of them
}

// Approver asks about builds, once per content; yes agrees to all. again is the
// command line that a hint offers.
func (env *Env) Approver(again string, yes bool) func(context.Context, BuildRequest) error {
	return func(ctx context.Context, b BuildRequest) error {
		dir := env.StateDir()
		if dir == "" {
			return Fail(CodeFailed, "no directory for approvals: neither HOME nor XDG_STATE_HOME is set")
		}
		builds := trust.Builds{Dir: dir}
		if accepted, err := builds.Has(b.Digest); err != nil || accepted {
			return err
		}
		if yes {
			env.detail("building the image of %s from %s: agreed by --yes", b.For, b.Context)
			return nil
		}
		if env.AgreeBuild == nil {
			return Fail(CodeRefused, "the image of %s must be built from %s, and nobody is there to agree", b.For, env.Shown(b.Context)).
				Hint("look at %s, then run `%s --yes`", env.Shown(filepath.Join(b.Context, b.Dockerfile)), again)
		}
		agreed, err := env.AgreeBuild(ctx, b)
		if err != nil {
			return err
		}
		if !agreed {
			return Fail(CodeRefused, "the build for %s was declined", b.For)
		}
		return builds.Add(b.Digest, b.For+" "+b.Context, time.Now())
	}
}

// dockerBuild asks about what the Docker engine would build.
func dockerBuild(ask func(context.Context, BuildRequest) error) func(context.Context, docker.Build) error {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, b docker.Build) error {
		return ask(ctx, BuildRequest{
			For: strings.Join(b.Services, ", "), Context: b.Context, Dockerfile: b.Dockerfile,
			Target: b.Target, Args: b.Args, Digest: b.Hash, Text: b.Text, Files: b.Files, Bytes: b.Bytes,
		})
	}
}

// buildHashes names the images that a project builds by their content. The engine builds
// from no other; where what runs must be what the lock says, it is that content (B46).
func (env *Env) buildHashes(ctx context.Context, p *Project) (map[string]string, error) {
	builds, err := docker.Builds(ctx, p.Compiled)
	if err != nil {
		return nil, Fail(CodeFailed, "%w", err)
	}
	for _, b := range builds {
		for _, service := range b.Services {
			if err := env.checkBuild(p.Source, service, b.Content); err != nil {
				return nil, err
			}
		}
	}
	return docker.Hashes(builds), nil
}

// checkBuild compares what a worker's image is built from with the lock.
func (env *Env) checkBuild(s *Source, worker, content string) error {
	w := s.Worker(worker)
	if s.lock == nil || !env.frozen(s) || w == nil || w.Container.Build == nil {
		return nil
	}
	name := lock.BuildName(w.Container.Build)
	if locked := s.lock.Builds[name]; lock.Hashed(locked) && locked != content {
		return Fail(CodeRefused, "the workshop isn't what %s says (B46); nothing was started:%s", env.Shown(s.lockFile()),
			listed([]string{lock.Difference{Kind: lock.Build, Name: name, Locked: locked, Now: content}.String()})).Hint(lockHint)
	}
	return nil
}

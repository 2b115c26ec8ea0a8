package app

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// alsoTime bounds how long an engine that isn't used may take to answer.
const alsoTime = 2 * time.Second

// alsoAnswer are the engines that answer at their usual sockets and aren't used, each with
// the line that chooses it. Those of Docker without root and of Docker Desktop are where
// their documentation has them.
func (env *Env) alsoAnswer(ctx context.Context, used engine.Info) (out []doctor.Finding) {
	places := []facts.Place{}
	if host, _, err := docker.Endpoint(docker.Options{Flavour: engine.FlavourPodman, Lookup: env.Lookup}); err == nil {
		places = append(places, facts.Place{Engine: promise.Podman, Endpoint: host})
	}
	if dir := env.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, facts.Place{Engine: promise.Docker, Endpoint: "unix://" + filepath.Join(dir, "docker.sock")})
	}
	for _, name := range []string{"run", "desktop"} {
		if env.Home != "" {
			places = append(places, facts.Place{Engine: promise.Docker, Endpoint: "unix://" + filepath.Join(env.Home, ".docker", name, "docker.sock")})
		}
	}
	for _, p := range places {
		if used.Endpoint != "" && sameEndpoint(p.Endpoint, used.Endpoint) || !env.answers(ctx, p) {
			continue
		}
		choose := "`workshop --engine podman up`"
		if p.Engine == promise.Docker {
			choose = "`export DOCKER_HOST=" + p.Endpoint + "`"
		}
		out = append(out, doctor.Finding{
			Group: doctor.Engine, Name: "also", Level: doctor.OK,
			Text: fmt.Sprintf("%s answers at %s, too; to use it: %s", p.Engine, Printable(p.Endpoint), choose),
		})
	}
	return out
}

func (env *Env) answers(ctx context.Context, p facts.Place) bool {
	ctx, cancel := context.WithTimeout(ctx, alsoTime)
	defer cancel()
	e, err := env.engineAt(ctx, p)
	if err != nil {
		return false
	}
	defer e.Close()
	return e.Ping(ctx) == nil
}

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Info describes the engine. The result is cached for the lifetime of e.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return e.info(ctx)
	}
	// Before concurrent calls; if it fails, they report it.
	if err := e.Ping(ctx); errors.Is(err, errSilent) {
		return engine.Info{}, err
	}
	within, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
	defer cancel()
	raw, own, err := e.itself(within)
	if err != nil {
		switch {
		case context.Cause(within) == errSilent:
			err = e.silent()
		case errors.Is(ctx.Err(), context.DeadlineExceeded): // the caller's time is shorter
			err = &UnreachableError{Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: errors.New("no answer in time"), Hint: restartHint}
		}
		return engine.Info{}, e.explain(notDocker(e, err))
	}
	if raw.ServerVersion == "" || raw.OSType == "" {
		return engine.Info{}, e.foreignAnswer("its answers name no version")
	}
	if v := e.cli.ClientVersion(); versions.LessThan(v, MinAPIVersion) {
		return engine.Info{}, fmt.Errorf("the Docker Engine at %s is too old: it speaks API %s, workshop needs %s (Docker 20.10) or later", e.endpoint.host, v, MinAPIVersion)
	}
	out := e.describe(raw)
	if out.Flavour, out.ID = engine.FlavourDocker, raw.ID; own != nil {
		out.Flavour = engine.FlavourPodman
		own.addTo(&out)
	}
	out.Kind = string(out.Flavour)
	if want := e.opts.Flavour; want == engine.FlavourPodman && out.Flavour != want {
		return engine.Info{}, &engine.RefusedError{Reason: fmt.Sprintf("%s answers at %s, not podman", out.Flavour, out.Endpoint), Do: "use it as what it is: `--engine docker` with DOCKER_HOST"}
	}
	out.Unlimited = e.opts.WithoutLimits && !out.Limits.All()
	f := e.dialectFacts(out, "")
	out.Findings, out.NoCompose = dialect.Findings(f), dialect.NoCompose(f)
	e.info = func(context.Context) (engine.Info, error) { return out, nil }
	return out, nil
}

// itself asks the engine what it is. own is podman's answer in its own API, and raw what of
// it Docker's API has, too; another engine has none.
func (e *Engine) itself(ctx context.Context) (raw system.Info, own *libpodInfo, err error) {
	if !e.pingsAsPodman(ctx) {
		var version types.Version
		g, gctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) { raw, err = e.cli.Info(gctx); return err })
		g.Go(func() (err error) { version, err = e.cli.ServerVersion(gctx); return err })
		if err := g.Wait(); err != nil || !isPodman(version) {
			if version.APIVersion == "" {
				raw.ServerVersion = ""
			}
			return raw, nil, err
		}
	}
	if own, err = e.libpod(ctx); err != nil {
		return raw, nil, err
	}
	return own.docker(), own, nil
}

// notDocker names an answer that isn't one of Docker's API.
func notDocker(e *Engine, err error) error {
	if err == nil {
		return nil
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	malformed := strings.Contains(err.Error(), "malformed HTTP") // net/http has no type for it
	// The client's Info keeps the text of the decoder's error only.
	if malformed || syntax || kind || cerrdefs.IsNotFound(err) || strings.HasPrefix(err.Error(), "Error reading remote info: ") && !closed(err) {
		return e.foreignAnswer(err.Error())
	}
	return err
}

func (e *Engine) foreignAnswer(why string) error {
	return &UnreachableError{
		Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: fmt.Errorf("what listens there doesn't speak Docker's API (%s)", clip.Text(why, maxQuoted)),
		Hint: "name the engine's own socket in DOCKER_HOST, or choose another engine: `--engine namespace`",
	}
}

// maxQuoted bounds, in bytes, what is quoted of a foreign answer.
const maxQuoted = 200

func (e *Engine) describe(raw system.Info) engine.Info {
	local := e.isLocal(raw)
	security := func(name string) bool {
		return slices.ContainsFunc(raw.SecurityOptions, func(s string) bool { return strings.HasPrefix(s, "name="+name) || s == name })
	}
	return engine.Info{
		Endpoint: e.endpoint.host, Context: e.endpoint.context, Version: raw.ServerVersion, APIVersion: e.cli.ClientVersion(),
		OS: raw.OSType, Arch: goarch(raw.Architecture), Local: local,
		DataRoot: raw.DockerRootDir, Runtimes: slices.Sorted(maps.Keys(raw.Runtimes)), DefaultRuntime: raw.DefaultRuntime,
		IPv6: hasIPv6(local), Socket: e.endpoint.socket(),
		Limits: engine.Limits{
			Memory: raw.MemoryLimit, Swap: raw.SwapLimit, CPU: raw.CPUCfsPeriod && raw.CPUCfsQuota, PIDs: raw.PidsLimit,
			Seccomp: security("seccomp"),
		},
		Daemon: engine.Daemon{
			OperatingSystem: raw.OperatingSystem, CgroupVersion: raw.CgroupVersion, CgroupDriver: raw.CgroupDriver, LiveRestore: raw.LiveRestoreEnabled,
			Rootless: security("rootless"), UserRemap: security("userns"), SELinux: security("selinux"),
			Desktop: strings.Contains(raw.OperatingSystem, "Docker Desktop"), GVisorFlags: raw.Runtimes[compose.GVisorRuntime].Args,
		},
	}
}

// isPodman reads which program answers: podman calls itself so among the components
// (podman: pkg/api/handlers/compat/version.go).
func isPodman(v types.Version) bool {
	return slices.ContainsFunc(v.Components, func(c types.ComponentVersion) bool { return c.Name == "Podman Engine" })
}

// goarch maps the kernel's machine name, which the engine reports.
func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// isLocal reports whether the daemon sees this machine's files: it listens on a unix
// socket and has this kernel and this host name. A socket that is forwarded, mounted
// into a container or served from a VM (Docker Desktop) fails one of these.
func (e *Engine) isLocal(raw system.Info) bool {
	if e.endpoint.socket() == "" || runtime.GOOS != "linux" || strings.Contains(raw.OperatingSystem, "Docker Desktop") {
		return false
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil || strings.TrimSpace(string(release)) != raw.KernelVersion {
		return false
	}
	name, err := os.Hostname()
	return err == nil && name == raw.Name
}

func hasIPv6(local bool) bool {
	if !local {
		// A room where it isn't expected refuses it: closed either way.
		return false
	}
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

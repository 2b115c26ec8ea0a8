package docker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
	"github.com/llmdo/workshop/internal/promise"
)

// Info describes the engine. The result is cached for the lifetime of e.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return e.info(ctx)
	}
	_ = e.Ping(ctx) // before concurrent calls; if it fails, they report it
	var raw system.Info
	var version types.Version
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { raw, err = e.cli.Info(gctx); return err })
	g.Go(func() (err error) { version, err = e.cli.ServerVersion(gctx); return err })
	if err := g.Wait(); err != nil {
		return engine.Info{}, e.explain(err)
	}
	if v := e.cli.ClientVersion(); versions.LessThan(v, MinAPIVersion) {
		return engine.Info{}, fmt.Errorf("the Docker Engine at %s is too old: it speaks API %s, workshop needs %s (Docker 20.10) or later", e.endpoint.host, v, MinAPIVersion)
	}
	out := e.describe(raw)
	if out.Flavour = flavourOf(version); out.Flavour == engine.FlavourDocker {
		out.ID = raw.ID // podman makes a new one for each answer
	}
	if out.Flavour == engine.FlavourPodman {
		own, err := e.libpod(ctx)
		if err != nil {
			return engine.Info{}, e.explain(err)
		}
		own.addTo(&out)
	}
	out.Unlimited = e.opts.WithoutLimits && !out.Limits.All()
	f := e.dialectFacts(out, "")
	out.Findings, out.NoCompose = dialect.Findings(f), dialect.NoCompose(f)
	e.info = func(context.Context) (engine.Info, error) { return out, nil }
	return out, nil
}

func (e *Engine) describe(raw system.Info) engine.Info {
	local := e.isLocal(raw)
	security := func(name string) bool {
		return slices.ContainsFunc(raw.SecurityOptions, func(s string) bool { return strings.HasPrefix(s, "name="+name) || s == name })
	}
	return engine.Info{
		Kind: promise.Docker, Endpoint: e.endpoint.host, Context: e.endpoint.context, Version: raw.ServerVersion, APIVersion: e.cli.ClientVersion(),
		OS: raw.OSType, Arch: goarch(raw.Architecture), Local: local,
		DataRoot: raw.DockerRootDir, Runtimes: slices.Sorted(maps.Keys(raw.Runtimes)), DefaultRuntime: raw.DefaultRuntime,
		IPv6: hasIPv6(local), Socket: e.endpoint.socket(),
		Limits: engine.Limits{
			Memory: raw.MemoryLimit, Swap: raw.SwapLimit, CPU: raw.CPUCfsPeriod && raw.CPUCfsQuota, PIDs: raw.PidsLimit,
			Seccomp: security("seccomp"),
		},
		Daemon: engine.Daemon{
			OperatingSystem: raw.OperatingSystem, CgroupVersion: raw.CgroupVersion, LiveRestore: raw.LiveRestoreEnabled,
			Rootless: security("rootless"), UserRemap: security("userns"), SELinux: security("selinux"),
			Desktop: strings.Contains(raw.OperatingSystem, "Docker Desktop"),
		},
	}
}

// flavourOf reads which program answers: podman calls itself so among the components
// (podman: pkg/api/handlers/compat/version.go).
func flavourOf(v types.Version) engine.Flavour {
	for _, c := range v.Components {
		if c.Name == "Podman Engine" {
			return engine.FlavourPodman
		}
	}
	return engine.FlavourDocker
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

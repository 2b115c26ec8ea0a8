package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/systemd"
)

// dialectFacts are those of an engine; dir is the project's runtime directory.
func (e *Engine) dialectFacts(i engine.Info, dir string) dialect.Facts {
	if dir != "" {
		dir = filepath.Join(dir, string(i.Flavour))
	}
	processes, files := ownLimits()
	return dialect.Facts{
		Flavour: i.Flavour, Local: i.Local, DefaultRuntime: i.DefaultRuntime, CgroupVersion: i.Daemon.CgroupVersion, CgroupV1: e.opts.CgroupV1,
		Limits: i.Limits, Systemd: i.Daemon.CgroupDriver == "systemd", EndsAtLogout: cgroup.SystemdRuns() && !systemd.Lingers(),
		Rootless: i.Daemon.Rootless, IDs: min(i.Daemon.UIDs, i.Daemon.GIDs), NetworkHelper: i.Daemon.NetworkHelper, UID: os.Getuid(), GID: os.Getgid(),
		SELinux: i.Daemon.SELinux, Processes: processes, Files: files, Dir: dir,
	}
}

// Check refuses what the engine's flavour has no words for, all at once; unsupported
// fields are refused by the translation.
func (e *Engine) Check(ctx context.Context, c *compose.Compiled) error {
	info, err := e.Info(ctx)
	if err != nil || info.Flavour == engine.FlavourDocker {
		return err
	}
	f := e.dialectFacts(info, runtimeDir(c))
	errs := []error{dialect.Refuse(f)}
	for _, service := range sortedKeys(c.Roles) {
		t, err := translate(engine.Desired{Compiled: c}, service, "unknown", "")
		if err == nil {
			_, _, err = dialect.Translate(dialectCreation(c, service, t), f)
		}
		errs = append(errs, err)
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func runtimeDir(c *compose.Compiled) string {
	if c.Facts == nil {
		return ""
	}
	return c.Facts.RuntimeDir
}

// dialectCreation is a creation with the names of its network namespace.
func dialectCreation(c *compose.Compiled, service string, t *creation) dialect.Creation {
	owner := namesOwner(c, service)
	return dialect.Creation{
		Service: service, Role: c.Roles[service], User: t.config.User, Host: t.host,
		Names: dialect.Names{Hosts: extraHosts(owner), Servers: owner.DNS, Search: owner.DNSSearch, Options: owner.DNSOpts},
	}
}

// namesOwner is the service that owns the network namespace of another one.
func namesOwner(c *compose.Compiled, service string) types.ServiceConfig {
	owner := c.Project.Services[service]
	if other, ok := strings.CutPrefix(owner.NetworkMode, types.ServicePrefix); ok {
		owner = c.Project.Services[other]
	}
	return owner
}

// translated changes a creation into the engine's words, and puts the files that it names
// where the engine reads them.
func (r *run) translated(ctx context.Context, service string, t *creation) error {
	info, err := r.e.Info(ctx)
	if err != nil || info.Flavour == engine.FlavourDocker {
		return err
	}
	host, files, err := dialect.Translate(dialectCreation(r.p.Compiled, service, t), r.e.dialectFacts(info, runtimeDir(r.p.Compiled)))
	if err != nil {
		return err
	}
	t.config.Hostname = namesOwner(r.p.Compiled, service).Hostname // Docker gives it with the network
	if t.host = host; r.p.Compiled.Roles[service] == compose.RoleWorker {
		for _, x := range info.Findings {
			if !x.Held && x.Accepted {
				t.waive(x.Promise)
			}
		}
	}
	return placeFiles(files)
}

// placeAgain puts the files of a container there before it is started: the runtime
// directory may have been removed since it was created.
func (r *run) placeAgain(ctx context.Context, service string) error {
	info, err := r.e.Info(ctx)
	if err != nil || info.Flavour == engine.FlavourDocker || runtimeDir(r.p.Compiled) == "" {
		return err // a restart: nothing is known of the machine
	}
	t, err := translate(r.p.Desired, service, "unknown", "")
	if err != nil {
		return err
	}
	return r.translated(ctx, service, t)
}

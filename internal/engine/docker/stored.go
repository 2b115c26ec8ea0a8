package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/internal/engine"
)

// checked inspects a container that isn't started yet, and compares it with its creation;
// once, if this run created it.
func (r *run) checked(ctx context.Context, id, service string) (*container.InspectResponse, error) {
	r.mu.Lock()
	sent := r.sent[id]
	r.mu.Unlock()
	if sent != nil && sent.found != nil {
		return sent.found, nil
	}
	c, err := r.e.inspect(ctx, id, service)
	if err != nil {
		return nil, conflict(err)
	}
	if err := r.checkStored(ctx, id, service, sent, &c); err != nil {
		return nil, err
	}
	if sent != nil {
		sent.found = &c
	}
	return &c, nil
}

// checkStored compares a container with its creation before it is started: an engine
// may ignore a setting without an error, and `docker update` changes a stopped
// container. A container that differs is removed, and the error is an
// [engine.RefusedError].
func (r *run) checkStored(ctx context.Context, id, service string, sent *creation, c *container.InspectResponse) error {
	info, err := r.e.Info(ctx)
	if err != nil {
		return err
	}
	do := "update the engine, or use another one: `workshop --engine namespace up`"
	if sent == nil { // created by an earlier run
		if engine.MadeByEngine(c.Config.Labels) != engine.ConfigHash(r.p.Desired, service) {
			// A restart of what an older workshop.yaml asked for.
			older := *c.HostConfig
			older.Mounts = mountsOf(c)
			r.askedFor(id, &creation{config: c.Config, host: &older})
			return nil
		}
		if sent, err = r.creation(ctx, service, c.Image); err != nil {
			return err
		}
		if strings.Contains(c.Config.Labels[engine.LabelNotHeld], "B5") {
			sent.withoutLimits(info.Limits)
		}
		if err := r.translated(ctx, service, sent); err != nil {
			return err
		}
		do = "the container is removed; recreate it with `workshop up`"
	}
	all := stored(sent, c, info)
	if info.Flavour == engine.FlavourPodman {
		d, err := r.annotated(ctx, id, c.Image)
		if err != nil {
			return err
		}
		if d != nil {
			all, do = append(all, *d), fmt.Sprintf(withoutAnnotations, c.Config.Image)
		}
	}
	if len(all) == 0 {
		r.askedFor(id, sent)
		return nil
	}
	if err := r.removeWrong(ctx, service, id); err != nil {
		return fmt.Errorf("%w; removing it failed: %w", engine.RefuseDifferences("container "+sent.name, all, ""), err)
	}
	return engine.RefuseDifferences("container "+sent.name, all, do)
}

// stored compares a creation, as it was sent, with the engine's inspection.
func stored(sent *creation, c *container.InspectResponse, info engine.Info) []engine.Difference {
	asked, found := askedOf(sent, info), foundOf(c)
	var out []engine.Difference
	for _, row := range rowsOf(info.Flavour) {
		if d, differs := row.compare(asked, found); differs {
			out = append(out, d)
		}
	}
	return out
}

// side is a container as it was asked for, or as the engine shows it.
type side struct {
	config   *container.Config
	host     *container.HostConfig
	main     []string // entrypoint and command
	mounts   []container.MountPoint
	networks map[string]*network.EndpointSettings
}

// askedOf adds to a creation what the engine takes where nothing is asked: its default
// runtime, the default lists of paths and the image's environment.
func askedOf(sent *creation, info engine.Info) side {
	config, host := *sent.config, *sent.host
	if host.Runtime == "" {
		host.Runtime = info.DefaultRuntime
	}
	if host.MaskedPaths == nil {
		host.MaskedPaths = maskedPaths
	}
	if host.ReadonlyPaths == nil {
		host.ReadonlyPaths = readonlyPaths
	}
	set := map[string]bool{}
	for _, line := range config.Env {
		set[nameOf(line)] = true
	}
	config.Env = slices.Clone(config.Env)
	for _, line := range sent.imageEnv {
		if !set[nameOf(line)] {
			config.Env = append(config.Env, line)
		}
	}
	out := side{config: &config, host: &host, main: slices.Concat(config.Entrypoint, config.Cmd)}
	for _, m := range host.Mounts {
		p := container.MountPoint{Type: m.Type, Source: m.Source, Destination: m.Target, RW: !m.ReadOnly}
		if m.Type == mount.TypeVolume {
			p.Name, p.Source = m.Source, ""
		}
		if m.BindOptions != nil {
			p.Propagation = m.BindOptions.Propagation
		}
		out.mounts = append(out.mounts, p)
	}
	if sent.network != nil {
		out.networks = sent.network.EndpointsConfig
	}
	return out
}

func foundOf(c *container.InspectResponse) side {
	out := side{config: c.Config, host: c.HostConfig, main: append([]string{c.Path}, c.Args...), mounts: c.Mounts}
	if c.NetworkSettings != nil {
		out.networks = maps.Clone(c.NetworkSettings.Networks)
		delete(out.networks, "none") // a network in name only
	}
	return out
}

// maskedPaths and readonlyPaths are those that every engine sets without being asked
// (moby: oci/defaults.go of 20.10; later versions have more).
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/timer_list", "/proc/timer_stats", "/sys/firmware",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// storedRow is a compared setting.
type storedRow struct {
	field, promise string
	// read returns the setting in one form for both sides; nil: none.
	read func(side) []string
	rule storedRule
}

// storedRule is what may be found besides what was asked.
type storedRule int

const (
	exact   storedRule = iota
	atLeast            // more is stricter, or the engine's default
	ifAsked            // anything, where nothing was asked: the image's or the engine's default
)

func (r storedRow) compare(a, f side) (engine.Difference, bool) {
	asked, found := r.read(a), r.read(f)
	if r.rule == ifAsked && len(asked) == 0 {
		return engine.Difference{}, false
	}
	missing, more := without(asked, found), without(found, asked)
	if len(missing) == 0 && (len(more) == 0 || r.rule == atLeast) {
		return engine.Difference{}, false
	}
	if r.field == "Env" { // values may be secret
		missing, more = namesOf(missing), namesOf(more)
	}
	return engine.Difference{Promise: r.promise, Field: r.field, Asked: strings.Join(missing, ", "), Found: strings.Join(more, ", ")}, true
}

// without returns the items of a that b doesn't have, sorted.
func without(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nameOf returns the name of a variable of the form NAME=VALUE.
func nameOf(line string) string {
	name, _, _ := strings.Cut(line, "=")
	return name
}

func namesOf(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = nameOf(line)
	}
	return out
}

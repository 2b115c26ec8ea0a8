package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Witness inspects the container. Its PID is one of this machine only if the engine is
// on it; who reads /proc compares.
func (e *Engine) Witness(ctx context.Context, project, service, dir string) (engine.Witness, error) {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return engine.Witness{}, err
	}
	if dir != "" && c.Directory != "" && c.Directory != dir {
		return engine.Witness{}, engine.NewForeignError(project, dir, c.Directory)
	}
	if c.State != "running" {
		return engine.Witness{}, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	}
	i, err := e.inspect(ctx, c.ID, c.Name)
	if err != nil {
		return engine.Witness{}, e.explain(err)
	}
	w, err := witnessOf(&i, e.endpoint.socket() != "")
	if info, e2 := e.Info(ctx); e2 == nil && info.Flavour == engine.FlavourPodman {
		asPodmanShows(&w, i.HostConfig)
		w.LogBounded, err = e.podmanBoundsLog(ctx, c.ID)
	}
	return w, err
}

// witnessOf reads an inspection; local: the engine is reached by a unix socket.
func witnessOf(i *container.InspectResponse, local bool) (engine.Witness, error) {
	h := i.HostConfig
	w := engine.Witness{Env: slices.Clone(i.Config.Env), Restart: string(h.RestartPolicy.Name)}
	if w.Restart == "" {
		w.Restart = "no"
	}
	if local {
		w.PID = i.State.Pid
	}
	w.Links = links(i.NetworkSettings)
	w.LogBounded = h.LogConfig.Config["max-size"] != "" && h.LogConfig.Config["max-file"] != ""
	for _, bindings := range h.PortBindings {
		for _, b := range bindings {
			w.Published = append(w.Published, net.JoinHostPort(b.HostIP, b.HostPort))
		}
	}
	slices.Sort(w.Published)
	w.Binds = map[string]string{}
	for _, m := range i.Mounts {
		if m.Type == "bind" {
			w.Binds[m.Destination] = m.Source
		}
	}
	w.Settings = settingsOf(i)
	text, err := json.Marshal(i)
	w.Text = string(text)
	return w, err
}

// links reads the networks of a container. A bridge is called by the network's ID where
// its options name no other, which no network of ours does (libnetwork: bridge.go).
func links(n *container.NetworkSettings) (out []engine.Link) {
	if n == nil {
		return nil
	}
	for _, name := range sortedKeys(n.Networks) {
		at := n.Networks[name]
		if at == nil || len(at.NetworkID) < bridgeDigits {
			continue
		}
		l := engine.Link{Bridge: "br-" + at.NetworkID[:bridgeDigits]}
		l.Addr4, _ = netip.ParseAddr(at.IPAddress) // "": it has none
		l.Addr6, _ = netip.ParseAddr(at.GlobalIPv6Address)
		if l.Addr4.IsValid() || l.Addr6.IsValid() {
			out = append(out, l)
		}
	}
	return out
}

const bridgeDigits = 12

func settingsOf(i *container.InspectResponse) *engine.Settings {
	h := i.HostConfig
	s := &engine.Settings{
		Privileged: h.Privileged, CapAdd: h.CapAdd, CapDrop: h.CapDrop, ReadOnly: h.ReadonlyRootfs, User: i.Config.User,
		Memory: h.Memory, Swap: h.MemorySwap, CPUs: float64(h.NanoCPUs) / 1e9, Runtime: h.Runtime,
		Main: append([]string{i.Path}, i.Args...),
		Namespaces: map[string]string{
			"pid": string(h.PidMode), "ipc": string(h.IpcMode), "uts": string(h.UTSMode), "cgroup": string(h.CgroupnsMode),
			"net": string(h.NetworkMode), "user": string(h.UsernsMode),
		},
	}
	if h.CPUQuota > 0 && h.CPUPeriod > 0 && s.CPUs == 0 {
		s.CPUs = float64(h.CPUQuota) / float64(h.CPUPeriod)
	}
	if h.PidsLimit != nil {
		s.PIDs = *h.PidsLimit
	}
	for _, o := range h.SecurityOpt {
		if profile, ok := strings.CutPrefix(o, "seccomp="); ok && len(profile) > 40 {
			o = fmt.Sprintf("seccomp=(%d bytes)", len(profile))
		}
		s.Security = append(s.Security, o)
	}
	for _, d := range h.Devices {
		s.Devices = append(s.Devices, d.PathOnHost)
	}
	for _, d := range h.DeviceRequests {
		s.Devices = append(s.Devices, "request to "+d.Driver)
	}
	s.Devices = append(s.Devices, h.DeviceCgroupRules...)
	return s
}

// Crash lets a program in the container send SIGABRT to the main process, which a Go
// program doesn't survive. To the engine a signal of its own would be a stop by hand,
// after which it restarts nothing.
func (e *Engine) Crash(ctx context.Context, project, service, dir string) error {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return err
	}
	if dir != "" && c.Directory != "" && c.Directory != dir {
		return engine.NewForeignError(project, dir, c.Directory)
	}
	if c.Role == compose.RoleWorker.String() {
		return fmt.Errorf("%s is a worker, and only a room or guard can be crashed", service)
	}
	made, err := e.cli.ContainerExecCreate(ctx, c.ID, container.ExecOptions{Cmd: []string{compose.ImageInit, "probe", "signal SIGABRT 1"}})
	if err == nil {
		err = e.cli.ContainerExecStart(ctx, made.ID, container.ExecStartOptions{Detach: true})
	}
	return e.explain(err)
}

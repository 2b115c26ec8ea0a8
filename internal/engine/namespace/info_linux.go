package namespace

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/systemd"
)

// Info describes what the machine can enforce.
func (e *Engine) Info(context.Context) (engine.Info, error) {
	_, noIPv6 := os.Stat("/proc/net/if_inet6")
	i := engine.Info{
		Kind: kind, Version: e.opts.Version, OS: "linux", Arch: arch, Local: true,
		DataRoot: e.opts.StateDir, Own: []string{e.opts.StateDir, e.opts.CacheDir},
		IPv6: noIPv6 == nil, Unlimited: e.unlimited(),
	}
	can, err := e.limits()
	i.Limits = engine.Limits{Memory: can.Memory, Swap: can.Swap, CPU: can.CPU, PIDs: can.PIDs, Seccomp: hasSeccomp()}
	var missing *cgroup.Unavailable
	switch {
	case errors.As(err, &missing):
		for _, m := range missing.Missing {
			i.Findings = append(i.Findings, engine.Finding{Promise: "B5", Name: m.Limit, Meaning: m.Why, Do: missing.Do})
		}
	case err != nil:
		return i, err
	}
	if e.groups().scope {
		i.Findings = append(i.Findings, scopeFinding(systemd.Lingers()))
	}
	i.Findings = append(i.Findings, e.userNamespaces(), e.netfilterFinding())
	return i, nil
}

// hasSeccomp reports whether the kernel supports seccomp filters: a call without a
// filter then fails with EFAULT (seccomp(2)).
func hasSeccomp() bool {
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	return e == unix.EFAULT
}

// InitNames returns the names for Facts, the same as a Docker engine's.
func (e *Engine) InitNames(context.Context) (image, volume string, err error) {
	n, err := e.init.Names(arch)
	if err != nil {
		return "", "", err
	}
	return n.ImageID, n.Volume(), nil
}

// Capabilities returns those of a container engine.
func (e *Engine) Capabilities() engine.Capabilities { return engine.Capabilities{Contained: true} }

// Ping returns nil: the engine is this program.
func (e *Engine) Ping(context.Context) error { return nil }

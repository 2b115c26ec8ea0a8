package namespace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/seccomp"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// machine collects what translations need.
func (e *Engine) machine(ctx context.Context, c *compose.Compiled) (machine, error) {
	m := machine{
		rootless: e.rootless, uid: os.Geteuid(), gid: os.Getegid(), unlimited: e.unlimited(),
		volumes: filepath.Join(e.dir(c.Project.Name), api.VolumeDir), resolv: filepath.Join(e.dir(c.Project.Name), api.ResolvDir),
		caches: e.cachesDir(c.Project.Name),
		image:  e.imageOf(ctx), disk: e.diskOf(ctx), real: filepath.EvalSymlinks, guestInit: e.guestInit(),
	}
	var err error
	if m.tools, _, err = e.programDir(); err != nil {
		return m, err
	}
	// Bind sources must not have symbolic links in their path.
	for _, dir := range []*string{&m.volumes, &m.caches, &m.resolv, &m.tools, &m.guestInit} {
		if *dir, err = realParent(*dir); err != nil {
			return m, err
		}
	}
	if len(c.Seccomp) > 0 {
		if m.filter, err = seccomp.Filter(c.Seccomp, arch); err != nil {
			return m, err
		}
	}
	if !e.rootless {
		m.kvm = mayOpenKVM
	} else {
		m.firstPort = 1024
		if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(b))); err == nil {
				m.firstPort = n
			}
		}
		var files unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
			m.files = files.Max
		}
	}
	return m, nil
}

// mayOpenKVM refuses a user who can't open /dev/kvm. Root gives workers no group of its own.
func mayOpenKVM(service string, uid, gid uint32) error {
	var st unix.Stat_t
	if err := unix.Stat("/dev/"+kvm, &st); err != nil {
		return &engine.RefusedError{Promise: "B13", Reason: fmt.Sprintf("%s has a virtual machine, and /dev/kvm: %v", service, err), Do: "see `workshop vm check`"}
	}
	bits := st.Mode & 7
	switch {
	case uid == st.Uid:
		bits = st.Mode >> 6 & 7
	case gid == st.Gid:
		bits = st.Mode >> 3 & 7
	}
	if bits&6 == 6 {
		return nil
	}
	return &engine.RefusedError{
		Promise: "B13", Reason: fmt.Sprintf("%s has a virtual machine, and its user, %d:%d, may not open /dev/kvm", service, uid, gid),
		Do: "let every user open it: `chmod 0666 /dev/kvm`",
	}
}

// realParent resolves the symbolic links of a path whose last elements may not exist.
func realParent(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !os.IsNotExist(err) {
		return real, err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	real, err = realParent(parent)
	return filepath.Join(real, filepath.Base(path)), err
}

// Check refuses a project that this engine can't run on this machine, before
// anything is pulled or started.
func (e *Engine) Check(ctx context.Context, c *compose.Compiled) error {
	m, err := e.machine(ctx, c)
	if err != nil {
		return err
	}
	if err := e.checkRooms(c); err != nil {
		return err
	}
	m.image, m.real = pendingImage, realParent // neither images nor directories need exist yet
	d := engine.Desired{Compiled: c}
	for _, service := range sortedKeys(c.Project.Services) {
		if c.Project.Services[service].Build != nil {
			return buildRefusal(service)
		}
		if _, err := translate(d, service, m); err != nil {
			return err
		}
	}
	return nil
}

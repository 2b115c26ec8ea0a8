package namespace

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/vm/config"
)

// Places in the container of a virtual machine.
const (
	machineProgram = "/workshop-vm"
	machineFile    = "/machine.json" // a [config.Machine]
	machineInit    = "/init"
	machineKit     = "/kit"
	machineRoot    = "/root.erofs"
	machineShares  = "/shares"
)

// The two directories of [machineShares], and the tags of the shares that they are.
const (
	readOnlyShare = "ro"
	writableShare = "rw"
)

// kvm is the device of hardware virtualization, in /dev.
const kvm = "kvm"

const (
	// machineFiles are the descriptors that each of them may have, where the caller may have as
	// many: the guest's open files are the file server's.
	machineFiles = 16384
	// machineShm is for a /dev/shm that none of them uses.
	machineShm = 1 << 20
)

// machine turns the container of a worker with a kernel of its own into that in which its
// virtual machine runs, with what the worker was in [machineFile]. All that holds a worker
// holds the machine: its user, its filter, its limits, its network, and its mounts, which are
// below two directories that the guest is served. What the guest makes of them is no matter:
// each mount is where it was in the one around it, so that what is read-only stays so (B3, B8).
func (t *translation) machine() error {
	vm := t.c.Machine(t.name)
	if vm == nil {
		return nil
	}
	c := t.out
	m := config.Machine{
		Accelerator: config.KVM, Kit: machineKit, Init: machineInit, CPUs: int(math.Ceil(c.Limits.CPUs)),
		MemoryMiB: int((c.Limits.Memory - compose.VMOverhead(c.Limits.Memory, vm.Emulated)) >> 20), Nodes: compose.VMNodes(c.Limits.Memory),
	}
	if vm.Emulated {
		m.Accelerator = config.TCG
	}
	m.Guest.Container, m.Guest.Nodes = t.guest(m.MemoryMiB), m.Nodes

	mounts := []spec.Mount{{Source: vm.Program, Target: machineProgram}, {Source: vm.Kit, Target: machineKit}}
	for _, name := range vm.QEMU {
		mounts = append(mounts, spec.Mount{Source: name, Target: name})
	}
	if c.Root.Dir != "" {
		m.Root, m.Guest.Container.Root.Dir = machineRoot, config.RootDir
		disk, err := t.m.disk(c.Image)
		if err != nil {
			return fmt.Errorf("its root file system: %w", err)
		}
		mounts = append(mounts, spec.Mount{Source: disk, Target: machineRoot})
	}
	for i := range mounts {
		var err error
		if mounts[i].Source, err = t.m.real(mounts[i].Source); err != nil {
			return fmt.Errorf("the source of %s: %w", mounts[i].Target, err)
		}
	}
	mounts = append(mounts, spec.Mount{Source: t.m.guestInit, Target: machineInit}) // which is made before it is created
	for i := range mounts {
		mounts[i].Type, mounts[i].ReadOnly = spec.Bind, true
	}
	for _, mount := range c.Mounts {
		switch mount.Target {
		case compose.OutletDir:
			m.Outlet = compose.OutletSocket
			mounts = append(mounts, mount)
		case compose.DialInDir:
			mounts = append(mounts, mount)
		}
	}
	served := serve(c.Mounts)
	m.Guest.Container.Mounts, c.Mounts = served.guest, append(mounts, served.host...)
	for _, s := range []config.Share{{Tag: readOnlyShare, ReadOnly: true}, {Tag: writableShare}} {
		if s.Dir = path.Join(machineShares, s.Tag); served.shares[s.Tag] > 0 {
			m.Shares, m.Guest.Shares = append(m.Shares, s), append(m.Guest.Shares, s.Tag)
		}
	}

	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.Root, c.Files = spec.Root{}, []spec.File{{Path: machineFile, Data: string(text), Mode: 0o444}}
	c.Process.Args, c.Process.Env, c.Process.Cwd = []string{machineProgram, "run", machineFile}, nil, "/"
	c.Limits.PIDs, c.Limits.Shm = compose.VMThreads, machineShm
	c.Rlimits = slices.Clone(c.Rlimits)
	for i, r := range c.Rlimits {
		if r.Name == "nofile" && (t.m.files == 0 || t.m.files >= machineFiles) {
			c.Rlimits[i] = spec.Rlimit{Name: r.Name, Soft: machineFiles, Hard: machineFiles}
		}
	}
	if !vm.Emulated {
		c.Devices = []string{kvm}
		if t.m.kvm != nil {
			if err := t.m.kvm(t.name, c.Process.UID, c.Process.GID); err != nil {
				return err
			}
		}
	}
	return t.sortMounts()
}

// inMachine returns the environment of a worker whose machine a container holds, and its
// mounts that are served; nil: it holds none.
func inMachine(c *spec.Container) (env []string, mounts engine.Guest, err error) {
	i := slices.IndexFunc(c.Files, func(f spec.File) bool { return f.Path == machineFile })
	if i < 0 || c.Labels[compose.LabelMachine] == "" {
		return nil, nil, nil
	}
	var m config.Machine
	if err := json.Unmarshal([]byte(c.Files[i].Data), &m); err != nil {
		return nil, nil, fmt.Errorf("%s of %s: %w", machineFile, c.Name, err)
	}
	mounts = engine.Guest{}
	for _, g := range m.Guest.Container.Mounts {
		if rest, served := subpath.Below(g.Source, config.SharesDir); served {
			mounts[path.Join(machineShares, rest)] = g.Target
		}
	}
	return m.Guest.Container.Process.Env, mounts, nil
}

// guest is the worker as the guest's kernel has it. Its mounts are added.
func (t *translation) guest(memory int) spec.Container {
	c := t.out
	g := spec.Container{
		Version: c.Version, Name: c.Name, Service: c.Service, Role: c.Role, Image: c.Image,
		Process: c.Process, Files: c.Files, Hostname: c.Hostname, Network: spec.Network{Mode: spec.NetHost},
		Limits: c.Limits, Rlimits: c.Rlimits, Seccomp: c.Seccomp, Landlock: c.Landlock, OOMScore: c.OOMScore,
		Restart: spec.RestartNo, Grace: c.Grace, Log: c.Log,
	}
	// Of its memory the guest gives the worker what it doesn't need itself.
	g.Limits.Memory, g.Limits.Unlimited = int64(memory)<<20, false
	// The guest's own PID 1 relays.
	if i := slices.Index(g.Process.Args, "--relay"); i > 0 && i+1 < len(g.Process.Args) {
		g.Process.Args = slices.Delete(slices.Clone(g.Process.Args), i, i+2)
	}
	return g
}

// served are a worker's mounts in its virtual machine.
type served struct {
	host   []spec.Mount   // in the machine's container, in any order
	guest  []spec.Mount   // in the guest's, in order
	shares map[string]int // how many mounts a share has at its top
}

// serve divides the mounts of a worker, in their order, among the container of its machine
// and its guest. A bind in another bind is in that one on both sides, and so it needs none in
// the guest, unless the other is served read-only and it isn't.
func serve(all []spec.Mount) served {
	s := served{shares: map[string]int{}}
	// at are, for each bind, the places in the machine's container that have what it has:
	// the guest sees the first.
	at := make([][]string, len(all))
	for i, m := range all {
		switch {
		case m.Target == compose.DialInDir || m.Target == compose.OutletDir:
			continue // the machine's own
		case m.Target == compose.InitDir:
			s.guest = append(s.guest, spec.Mount{Type: spec.Bind, Source: config.Init, Target: compose.InitPath, ReadOnly: true})
			continue
		case m.Type != spec.Bind:
			s.guest = append(s.guest, m)
			continue
		}
		around := -1
		for j := range i {
			if subpath.Within(m.Target, all[j].Target) && (around < 0 || len(all[j].Target) > len(all[around].Target)) {
				around = j
			}
		}
		var inner []string
		if around >= 0 {
			for _, dir := range at[around] {
				inner = append(inner, dir+m.Target[len(all[around].Target):])
			}
		}
		if len(inner) == 0 || !m.ReadOnly && !subpath.Within(inner[0], path.Join(machineShares, writableShare)) {
			tag := writableShare
			if m.ReadOnly {
				tag = readOnlyShare
			}
			name := path.Join(tag, strconv.Itoa(s.shares[tag]))
			s.shares[tag]++
			seen := m
			seen.Source, seen.Recursive = path.Join(config.SharesDir, name), false
			s.guest = append(s.guest, seen)
			inner = append([]string{path.Join(machineShares, name)}, inner...)
		}
		at[i] = inner
		for _, target := range inner {
			host := m
			host.Target = target
			host.ReadOnly = m.ReadOnly || subpath.Within(target, path.Join(machineShares, readOnlyShare))
			s.host = append(s.host, host)
		}
	}
	return s
}

package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// kernelProject has a worker with a kernel of its own in a room, one without a network, and
// one of this machine's.
func kernelProject(t *testing.T) *Compiled {
	t.Helper()
	w, f := sample(t, 3), sampleFacts()
	for i := range 2 {
		w.Workers[i].Container.Kernel = val(workshop.KernelSandboxed)
		w.Workers[i].Container.Resources.PIDs = val(int64(64))
	}
	w.Workers[0].Container.Ports = []workshop.Port{{Host: val("127.0.0.1"), Published: val(uint16(8080)), Target: val(uint16(80)), At: at(30)}}
	w.Workers[1].Container.Network = workshop.Network{Mode: val(firewall.None)}
	return withFacts(t, compiled(t, w), f)
}

// TestKernel: such a worker has the sandbox's runtime, a program that its kernel can read, no
// door, and the relay to an outlet in its room (B13).
func TestKernel(t *testing.T) {
	c := kernelProject(t)
	for _, v := range slices.Concat(Check(c), Check(c.base)) {
		t.Error(v)
	}
	if got := sortedKeys(c.Project.Services); !slices.Equal(got, []string{"guard", "outlet-worker-0", "room-worker-0", "room-worker-2", "worker-0", "worker-1", "worker-2"}) {
		t.Fatalf("services %q", got)
	}
	for _, tt := range []struct {
		name, runtime string
		pids          int64
		targets       []string
	}{
		{"worker-0", GVisorRuntime, 512, []string{"/opt/workshop tools-readable", "/run/outlet outlet-worker-0"}},
		{"worker-1", GVisorRuntime, 512, []string{"/opt/workshop tools-readable"}},
		{"worker-2", "", 256, []string{"/opt/workshop tools", "/run/workshop-door /run/user/1000/workshop/x/door-worker-2"}},
	} {
		s := c.Project.Services[tt.name]
		var targets []string
		for _, v := range s.Volumes {
			if isTools(v.Source) || v.Target == OutletDir || v.Target == DialInDir {
				targets = append(targets, v.Target+" "+v.Source)
			}
		}
		slices.Sort(targets)
		if s.Runtime != tt.runtime || s.PidsLimit != tt.pids || strings.Join(targets, ", ") != strings.ReplaceAll(strings.Join(tt.targets, ", "), "/run/workshop-door", DialInDir) {
			t.Errorf("%s: runtime %q, %d processes, %q", tt.name, s.Runtime, s.PidsLimit, targets)
		}
	}
	if got := strings.Join(c.Project.Services["outlet-worker-0"].Entrypoint, " "); got != "/workshop-init outlet --socket /run/outlet/outlet.sock --inbound 80" {
		t.Errorf("outlet: %s", got)
	}
	if got := DialInPaths(c, *c.Facts); len(got) != 1 {
		t.Errorf("doors: %q", got)
	}
	if v := c.Project.Volumes[ReadableToolsVolume]; v.Name != "workshop-init-2222-readable" || !bool(v.External) || !IsReadableTools(v.Name) {
		t.Errorf("readable tools: %+v", v)
	}
}

// TestKernelCheck: each thing that makes B13 hold is looked at again.
func TestKernelCheck(t *testing.T) {
	const outlet = "outlet-worker-0"
	for _, tt := range []struct {
		name, service string
		change        func(*Compiled, *types.ServiceConfig)
		want          string
	}{
		{"another runtime", "worker-0", func(_ *Compiled, s *types.ServiceConfig) { s.Runtime = "runc" }, `B13: service worker-0: its runtime is "runc", that of kernel sandboxed is "workshop-runsc"`},
		{"the engine's runtime", "worker-1", func(_ *Compiled, s *types.ServiceConfig) { s.Runtime = "" }, `B13: service worker-1: its runtime is "", that of kernel sandboxed is "workshop-runsc"`},
		{"no relay", "worker-0", func(_ *Compiled, s *types.ServiceConfig) {
			s.Entrypoint = slices.DeleteFunc(slices.Clone(s.Entrypoint), func(w string) bool { return w == "--relay" })
		}, "B13: service worker-0: its main process is to relay: false"},
		{"another's relay", "worker-2", func(_ *Compiled, s *types.ServiceConfig) {
			s.Entrypoint = append(slices.Clone(s.Entrypoint), "--relay", OutletSocket)
		}, "B13: service worker-2: its main process is to relay: true"},
		{"a door", "worker-0", func(_ *Compiled, s *types.ServiceConfig) {
			s.Volumes = append(slices.Clone(s.Volumes), bind("/run/user/1000/workshop/x/door-worker-0", DialInDir, true))
		}, "B13: service worker-0: it has a door, which another kernel can't open"},
		{"a program that can be read", "worker-2", func(c *Compiled, s *types.ServiceConfig) {
			s.Volumes = slices.Clone(s.Volumes)
			s.Volumes[slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == InitDir })].Source = ReadableToolsVolume
		}, `B12: service worker-2: workshop-init is mounted as "tools-readable", which is not for its kernel`},
		{"another's outlet", "worker-2", func(_ *Compiled, s *types.ServiceConfig) {
			s.Volumes = append(slices.Clone(s.Volumes), outletMount("room-worker-0", true))
		}, "B13: service worker-2: the volume at /run/outlet is not that of its own outlet, read-only"},
		{"an outlet's volume to write to", "worker-0", func(_ *Compiled, s *types.ServiceConfig) {
			s.Volumes = slices.Clone(s.Volumes)
			s.Volumes[slices.IndexFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == OutletDir })].ReadOnly = false
		}, "B13: service worker-0: the volume at /run/outlet is not that of its own outlet, read-only"},
		{"an outlet with a capability", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.CapAdd = []string{"NET_ADMIN"} }, `B1: service outlet-worker-0: the outlet has capabilities: ["NET_ADMIN"]`},
		{"an outlet as root", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.User = "0:0" }, `B4: service outlet-worker-0: the user is "0:0"`},
		{"an outlet on gVisor", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.Runtime = GVisorRuntime }, `B30: service outlet-worker-0: the runtime "workshop-runsc" is not known to have the machine's kernel`},
		{"another image", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.Image = "alpine" }, `B12: service outlet-worker-0: the image is "alpine", not workshop-init`},
		{"another program", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.Entrypoint = []string{ImageInit, "guard"} }, `B12: service outlet-worker-0: the main process is ["/workshop-init" "guard"]`},
		{"another room", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.NetworkMode = "service:room-worker-2" }, `B6: service outlet-worker-0: the network mode is "service:room-worker-2", its room is "room-worker-0"`},
		{"a network", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.Sysctls = types.Mapping{"net.ipv4.ip_forward": "1"} }, "B6: service outlet-worker-0: an outlet has no network of its own"},
		{"another volume", outlet, func(_ *Compiled, s *types.ServiceConfig) {
			s.Volumes = []types.ServiceVolumeConfig{socketsMount(false)}
		}, "B3: service outlet-worker-0: an outlet mounts the volume of its worker and nothing else"},
		{"a tmpfs", outlet, func(_ *Compiled, s *types.ServiceConfig) { s.Tmpfs = types.StringList{"/tmp:nosuid,nodev,size=1m"} }, "B3: service outlet-worker-0: an outlet has no tmpfs and no environment"},
		{"a room of this machine's kernel", outlet, func(c *Compiled, s *types.ServiceConfig) { c.RoomOf["worker-2"] = "room-worker-0" }, "B13: service outlet-worker-0: its room has 2 workers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kernelProject(t)
			s := c.Project.Services[tt.service]
			tt.change(c, &s)
			c.Project.Services[tt.service] = s
			var all []string
			for _, v := range Check(c) {
				all = append(all, v.String())
			}
			if !slices.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
		})
	}
}

// machineProject has a worker in a virtual machine in a room, one without a network, and one
// of this machine's kernel.
func machineProject(t *testing.T, emulated bool) *Compiled {
	t.Helper()
	w, f := sample(t, 3), sampleFacts()
	for i := range 2 {
		w.Workers[i].Container.Kernel = val(workshop.KernelVM)
		w.Workers[i].Container.Resources.PIDs = val(int64(64))
	}
	w.Workers[1].Container.Network = workshop.Network{Mode: val(firewall.None)}
	f.Kernels = map[workshop.Kernel]KernelFacts{workshop.KernelVM: {Mechanism: MechanismVM, VM: &VMFacts{
		Program: "/bin/workshop-vm", ProgramSHA256: "cccc", Kit: "/kits/aaaa", QEMU: []string{"/usr/bin/qemu-system-x86_64"}, QEMUVersion: "7.2.22", QEMUSHA256: "bbbb", Emulated: emulated,
	}}}
	return withFacts(t, compiled(t, w), f)
}

// TestMachine: such a worker has a door, which its machine opens, no runtime, its own number of
// processes, an outlet, and a label of what it is made of (B13).
func TestMachine(t *testing.T) {
	for emulated, by := range map[bool]string{false: "kvm", true: "tcg"} {
		c := machineProject(t, emulated)
		for _, v := range slices.Concat(Check(c), Check(c.base)) {
			t.Error(v)
		}
		if got := sortedKeys(c.Project.Services); !slices.Equal(got, []string{"guard", "outlet-worker-0", "room-worker-0", "room-worker-2", "worker-0", "worker-1", "worker-2"}) {
			t.Fatalf("services %q", got)
		}
		for name, want := range map[string]string{
			"worker-0": "64 [/opt/workshop tools /run/outlet outlet-worker-0 " + DialInDir + " /run/user/1000/workshop/x/door-worker-0] " + by + " kit=aaaa qemu=7.2.22/bbbb program=cccc",
			"worker-1": "64 [/opt/workshop tools " + DialInDir + " /run/user/1000/workshop/x/door-worker-1] " + by + " kit=aaaa qemu=7.2.22/bbbb program=cccc",
			"worker-2": "256 [/opt/workshop tools " + DialInDir + " /run/user/1000/workshop/x/door-worker-2] ",
		} {
			s := c.Project.Services[name]
			var targets []string
			for _, v := range s.Volumes {
				if isTools(v.Source) || v.Target == OutletDir || v.Target == DialInDir {
					targets = append(targets, v.Target+" "+v.Source)
				}
			}
			slices.Sort(targets)
			if got := fmt.Sprint(s.PidsLimit, " ", targets, " ", s.Labels[LabelMachine]); got != want || s.Runtime != "" {
				t.Errorf("%s: got %s, runtime %q\nwant %s", name, got, s.Runtime, want)
			}
			if is := c.Machine(name); (is != nil) != (name != "worker-2") || is != nil && is.Emulated != IsEmulated(s.Labels[LabelMachine]) {
				t.Errorf("%s: %+v", name, is)
			}
		}
		if got := DialInPaths(c, *c.Facts); len(got) != 3 {
			t.Errorf("doors: %q", got)
		}
	}
	if IsEmulated("") || !IsEmulated("what nobody knows") {
		t.Error("IsEmulated")
	}
}

// TestMachineCheck: what a virtual machine is made of is looked at again.
func TestMachineCheck(t *testing.T) {
	const label = "tcg kit=aaaa qemu=7.2.22/bbbb program=cccc"
	for _, tt := range []struct{ name, service, label, runtime, want string }{
		{"no label", "worker-0", "", "", `B13: service worker-0: it is made as "", its virtual machine is another`},
		{"with KVM", "worker-0", "kvm" + label[3:], "", `B13: service worker-0: it is made as "kvm kit=aaaa qemu=7.2.22/bbbb program=cccc", its virtual machine is another`},
		{"another kit", "worker-1", strings.Replace(label, "aaaa", "dddd", 1), "", `B13: service worker-1: it is made as "tcg kit=dddd qemu=7.2.22/bbbb program=cccc", its virtual machine is another`},
		{"another QEMU", "worker-1", strings.Replace(label, "bbbb", "dddd", 1), "", `B13: service worker-1: it is made as "tcg kit=aaaa qemu=7.2.22/dddd program=cccc", its virtual machine is another`},
		{"another program", "worker-1", strings.Replace(label, "cccc", "dddd", 1), "", `B13: service worker-1: it is made as "tcg kit=aaaa qemu=7.2.22/bbbb program=dddd", its virtual machine is another`},
		{"a runtime", "worker-0", label, "runc", `B13: service worker-0: it is made as "` + label + `", its virtual machine is another`},
		{"this machine's kernel", "worker-2", label, "", "B13: service worker-2: it says that it is a virtual machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := machineProject(t, true)
			s := c.Project.Services[tt.service]
			s.Labels = maps.Clone(s.Labels)
			s.Labels[LabelMachine], s.Runtime = tt.label, tt.runtime
			c.Project.Services[tt.service] = s
			var all []string
			for _, v := range Check(c) {
				all = append(all, v.String())
			}
			if !slices.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
		})
	}
}

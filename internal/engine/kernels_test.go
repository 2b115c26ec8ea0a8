package engine

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// TestKernels: the user's settings narrow by what workers may have a kernel, and say so where
// that leaves none (B13).
func TestKernels(t *testing.T) {
	const gvisor, vm = compose.MechanismGVisor, compose.MechanismVM
	registered := Info{Local: true, Flavour: FlavourDocker, Runtimes: []string{"runc", "workshop-runsc"}, Daemon: Daemon{GVisorFlags: []string{"--host-uds=open", "--network=sandbox"}}}
	namespaces := Info{Kind: "namespace", Arch: "amd64"}
	settings := func(k workshop.Kernel, by ...compose.Mechanism) map[workshop.Kernel][]compose.Mechanism {
		return map[workshop.Kernel][]compose.Mechanism{k: by}
	}
	for _, tt := range []struct {
		name     string
		info     Info
		settings map[workshop.Kernel][]compose.Mechanism
		kernel   workshop.Kernel
		want     compose.Mechanism
		says     string
	}{
		{"gVisor", registered, nil, workshop.KernelSandboxed, gvisor, ""},
		{"of other settings", registered, settings(workshop.KernelVM, vm), workshop.KernelSandboxed, gvisor, ""},
		{"the second", registered, settings(workshop.KernelSandboxed, vm, gvisor), workshop.KernelSandboxed, gvisor, ""},
		{"gVisor, narrowed", registered, settings(workshop.KernelSandboxed, gvisor), workshop.KernelSandboxed, gvisor, ""},
		{"vm", registered, nil, workshop.KernelVM, "", "this engine gives no worker a virtual machine: use namespaces: `--engine namespace`"},
		{"vm on namespaces", namespaces, nil, workshop.KernelVM, vm, ""},
		{"vm instead of gVisor", namespaces, nil, workshop.KernelSandboxed, vm, ""},
		{"vm on another processor", Info{Kind: "namespace", Arch: "arm64"}, nil, workshop.KernelVM, "", "virtual machines are there for amd64 alone, not for arm64: write `kernel: sandboxed`"},
		{"never this machine's", registered, nil, workshop.KernelHost, "", ": "},
		{"vm alone", registered, settings(workshop.KernelSandboxed, vm), workshop.KernelSandboxed, "", "this engine gives no worker a virtual machine, and your settings have `kernels: {sandboxed: [vm]}`: write `kernels: {sandboxed: [gvisor, vm]}` in your settings file"},
		{"nothing", registered, settings(workshop.KernelSandboxed), workshop.KernelSandboxed, "", "your settings have `kernels: {sandboxed: []}`: write `kernels: {sandboxed: [gvisor, vm]}`"},
		{"no vm", registered, settings(workshop.KernelVM), workshop.KernelVM, "", "your settings have `kernels: {vm: []}`: write `kernels: {vm: [vm]}`"},
		{"not registered", Info{Local: true, Flavour: FlavourDocker}, nil, workshop.KernelSandboxed, "", "the engine has no runtime workshop-runsc: install gVisor's runsc, write `"},
		{"gVisor on namespaces", namespaces, settings(workshop.KernelSandboxed, gvisor), workshop.KernelSandboxed, "", "nobody has tried gVisor on this engine, and your settings have `kernels: {sandboxed: [gvisor]}`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.info.Kernel(tt.kernel, tt.settings, func() compose.KernelFacts { return compose.KernelFacts{Mechanism: vm} })
			if got := f.Why + ": " + f.Do; f.Mechanism != tt.want || tt.want == "" && !strings.Contains(got, tt.says) {
				t.Errorf("got %q, %s\nwant %q, %s", f.Mechanism, got, tt.want, tt.says)
			}
		})
	}
}

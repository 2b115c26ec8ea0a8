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
		{"vm", registered, nil, workshop.KernelVM, "", "no engine gives a worker a virtual machine yet: write `kernel: sandboxed`"},
		{"never this machine's", registered, nil, workshop.KernelHost, "", ": "},
		{"vm alone", registered, settings(workshop.KernelSandboxed, vm), workshop.KernelSandboxed, "", "no engine gives a worker a virtual machine yet, and your settings have `kernels: {sandboxed: [vm]}`: write `kernels: {sandboxed: [gvisor, vm]}` in your settings file"},
		{"nothing", registered, settings(workshop.KernelSandboxed), workshop.KernelSandboxed, "", "your settings have `kernels: {sandboxed: []}`: write `kernels: {sandboxed: [gvisor, vm]}`"},
		{"no vm", registered, settings(workshop.KernelVM), workshop.KernelVM, "", "your settings have `kernels: {vm: []}`: write `kernels: {vm: [vm]}`"},
		{"not registered", Info{Local: true, Flavour: FlavourDocker}, nil, workshop.KernelSandboxed, "", "the engine has no runtime workshop-runsc: install gVisor's runsc, write `"},
		{"namespaces", Info{Kind: "namespace"}, nil, workshop.KernelSandboxed, "", "nobody has tried gVisor on this engine: use Docker: `--engine docker`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.info.Kernels(tt.settings)[tt.kernel]
			if got := f.Why + ": " + f.Do; f.Mechanism != tt.want || tt.want == "" && !strings.Contains(got, tt.says) {
				t.Errorf("got %q, %s\nwant %q, %s", f.Mechanism, got, tt.want, tt.says)
			}
		})
	}
}

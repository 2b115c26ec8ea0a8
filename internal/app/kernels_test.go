package app

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// TestKernelsOfTheUser: the user's settings alone say by what workers may have a kernel (B13).
func TestKernelsOfTheUser(t *testing.T) {
	const gvisor, vm = compose.MechanismGVisor, compose.MechanismVM
	type kernels = map[workshop.Kernel][]compose.Mechanism
	for _, tt := range []struct {
		name, file string
		want       kernels
		err        string // and its hint
	}{
		{"nothing said", "quiet: true\n", nil, ""},
		{"empty", "kernels:\n", nil, ""},
		{"all", "kernels: {sandboxed: [gvisor, vm], vm: [vm]}\n", kernels{"sandboxed": {gvisor, vm}, "vm": {vm}}, ""},
		{"narrowed", "kernels: {sandboxed: [vm]}\n", kernels{"sandboxed": {vm}}, ""},
		{"another order", "kernels: {sandboxed: [vm, gvisor]}\n", kernels{"sandboxed": {vm, gvisor}}, ""},
		{"none", "kernels: {vm: []}\n", kernels{"vm": {}}, ""},
		{"a slip", "kernels: {sandbox: [gvisor]}\n", nil, "unknown kernel \"sandbox\": did you mean \"sandboxed\"?"},
		{"this machine's", "kernels: {host: [gvisor]}\n", nil, "unknown kernel \"host\": known: sandboxed, vm"},
		{"a slip in a mechanism", "kernels: {sandboxed: [gvisr]}\n", nil, "sandboxed: unknown mechanism \"gvisr\": did you mean \"gvisor\"?"},
		{"a program", "kernels: {sandboxed: [runsc]}\n", nil, "did you mean \"gvisor\"?"},
		{"another program", "kernels: {vm: [firecracker]}\n", nil, "did you mean \"vm\"?"},
		{"less than is asked for", "kernels: {vm: [gvisor]}\n", nil, "vm: gvisor is not a virtual machine: write it for `sandboxed` alone"},
		{"less, by another name", "kernels: {vm: [runsc]}\n", nil, "unknown mechanism \"runsc\": known: vm"},
		{"text", "kernels: gvisor\n", nil, "want lists by kernel: write `kernels: {sandboxed: [gvisor, vm], vm: [vm]}`"},
		{"text inside", "kernels: {sandboxed: gvisor}\n", nil, "want a list: write `kernels:"},
		{"a number", "kernels: {sandboxed: [1]}\n", nil, "unknown mechanism \"1\": known: gvisor, vm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, env, err := withSettings(t, tt.file)
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error()+": "+strings.Join(hintsOf(err), ". "), tt.err)):
				t.Errorf("got %v (%q), want %q", err, hintsOf(err), tt.err)
			case err == nil && !reflect.DeepEqual(a.Settings.Kernels, tt.want):
				t.Errorf("got %v, want %v", a.Settings.Kernels, tt.want)
			}
			env["WORKSHOP_KERNELS"] = "gvisor"
			if _, _, err := a.UserValues(); err == nil {
				t.Error("WORKSHOP_KERNELS was taken")
			}
		})
	}
}

// kernelEngineFake answers with an Info.
type kernelEngineFake struct {
	engine.Engine
	info engine.Info
	err  error
}

func (f kernelEngineFake) Info(context.Context) (engine.Info, error) { return f.info, f.err }
func (f kernelEngineFake) Ping(context.Context) error                { return f.err }
func (kernelEngineFake) Close() error                                { return nil }

// TestAutoByKernels: the first engine on which each worker has its kernel is taken; where
// there is none, what each of them lacks is said.
func TestAutoByKernels(t *testing.T) {
	with := engine.Info{Kind: promise.Docker, Local: true, Flavour: engine.FlavourDocker, Runtimes: []string{compose.GVisorRuntime}, Daemon: engine.Daemon{GVisorFlags: []string{"--host-uds=open"}}}
	without := engine.Info{Kind: promise.Docker, Local: true, Flavour: engine.FlavourDocker}
	worker := func(name string, k workshop.Kernel) workshop.Worker {
		return workshop.Worker{Name: name, Container: workshop.Container{Kernel: workshop.Value[workshop.Kernel]{V: k}}}
	}
	host, sandboxed, vm := worker("h", workshop.KernelHost), worker("s", workshop.KernelSandboxed), worker("v", workshop.KernelVM)
	namespaces := engine.Info{Kind: promise.Namespace}
	for _, tt := range []struct {
		name    string
		workers []workshop.Worker
		docker  kernelEngineFake
		want    string // the engine
		why     string
		says    []string
	}{
		{"this machine's kernel", []workshop.Worker{host}, kernelEngineFake{info: without}, promise.Docker, "a Docker engine answers", nil},
		{"this machine's kernel, no Docker", []workshop.Worker{host}, kernelEngineFake{err: errors.New("silence")}, promise.Namespace, "silence", nil},
		{"sandboxed", []workshop.Worker{host, sandboxed}, kernelEngineFake{info: with}, promise.Docker, "s can have its kernel there", nil},
		{"sandboxed, not registered", []workshop.Worker{sandboxed}, kernelEngineFake{info: without}, "", "", []string{
			"nothing was started: on no engine here each worker has its kernel (B13):",
			"docker: s can't have kernel sandboxed: the engine has no runtime workshop-runsc",
			"namespace: s can't have kernel sandboxed: nobody has tried gVisor on this engine",
			"hint: docker: install gVisor's runsc, write `\"runtimes\"", "sudo systemctl restart docker",
		}},
		{"sandboxed, no Docker", []workshop.Worker{sandboxed}, kernelEngineFake{err: errors.New("silence")}, "", "", []string{"docker: silence", "namespace: s can't have kernel sandboxed"}},
		{"one of two", []workshop.Worker{sandboxed, vm}, kernelEngineFake{info: with}, "", "", []string{"docker: v can't have kernel vm: this engine gives no worker a virtual machine", "namespace: s can't"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := testEnv(&Env{Lookup: func(string) (string, bool) { return "", false }}, io.Discard)
			env.Engine = func(_ context.Context, name string, _ EngineOptions) (engine.Engine, error) {
				if name == promise.Docker {
					return tt.docker, nil
				}
				return kernelEngineFake{info: namespaces}, nil
			}
			c, _, err := env.choose(t.Context(), ProjectRef{Name: "x", kernels: kernelsOf(&workshop.Workshop{Workers: tt.workers})}, EngineOptions{})
			if tt.want != "" {
				if err != nil || c.Name != tt.want || c.Why != tt.why {
					t.Errorf("got %+v, %v, want %s: %s", c, err, tt.want, tt.why)
				}
				return
			}
			if CodeOf(err) != CodeRefused {
				t.Fatalf("got %+v, %v, want a refusal", c, err)
			}
			if strings.Contains(strings.Join(hintsOf(err), "\n"), "use Docker") {
				t.Errorf("Docker is among them: %q", hintsOf(err))
			}
			said := err.Error() + "\nhint: " + strings.Join(hintsOf(err), "\nhint: ")
			for _, want := range tt.says {
				if !strings.Contains(said, want) {
					t.Errorf("it doesn't say %q:\n%s", want, said)
				}
			}
		})
	}
}

package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// ownKernels are the kernels other than this machine's, which settings may narrow.
var ownKernels = []string{string(workshop.KernelSandboxed), string(workshop.KernelVM)}

// mechanismNames are names of programs and products, by the mechanism that is meant.
var mechanismNames = map[string]compose.Mechanism{
	"runsc": compose.MechanismGVisor, compose.GVisorRuntime: compose.MechanismGVisor, "sandboxed": compose.MechanismGVisor,
	"microvm": compose.MechanismVM, "kata": compose.MechanismVM, "firecracker": compose.MechanismVM, "qemu": compose.MechanismVM, "kvm": compose.MechanismVM,
}

// kernelSettings reads the value of the key `kernels`.
func kernelSettings(value any) (map[workshop.Kernel][]compose.Mechanism, error) {
	if value == nil {
		return nil, nil
	}
	const example = "write `kernels: {sandboxed: [gvisor, vm], vm: [vm]}`, or remove the key"
	keys, ok := value.(map[string]any)
	if !ok {
		return nil, Fail(CodeUsage, "setting kernels: got %q, want lists by kernel", fmt.Sprint(value)).Hint(example)
	}
	out := map[workshop.Kernel][]compose.Mechanism{}
	for name, value := range keys {
		if !slices.Contains(ownKernels, name) {
			return nil, Fail(CodeUsage, "setting kernels: unknown kernel %q", name).Hint("%s", Suggestion(name, ownKernels))
		}
		list, ok := value.([]any)
		if !ok {
			return nil, Fail(CodeUsage, "setting kernels: %s: got %q, want a list", name, fmt.Sprint(value)).Hint(example)
		}
		kernel := workshop.Kernel(name)
		out[kernel] = []compose.Mechanism{}
		for _, item := range list {
			m, err := mechanismOf(kernel, item)
			if err != nil {
				return nil, err
			}
			out[kernel] = append(out[kernel], m)
		}
	}
	return out, nil
}

func mechanismOf(kernel workshop.Kernel, item any) (compose.Mechanism, error) {
	name, _ := item.(string)
	all := compose.Mechanisms(kernel)
	if slices.Contains(all, compose.Mechanism(name)) {
		return compose.Mechanism(name), nil
	}
	var valid []string
	for _, m := range all {
		valid = append(valid, string(m))
	}
	fail := Fail(CodeUsage, "setting kernels: %s: unknown mechanism %q", kernel, fmt.Sprint(item))
	if name == string(compose.MechanismGVisor) {
		return "", Fail(CodeUsage, "setting kernels: %s: gvisor is not a virtual machine", kernel).Hint("write it for `sandboxed` alone: `kernels: {sandboxed: [gvisor]}`")
	}
	if meant := mechanismNames[strings.ToLower(name)]; slices.Contains(all, meant) {
		return "", fail.Hint("did you mean %q?", meant)
	}
	return "", fail.Hint("%s", Suggestion(name, valid))
}

// neededKernels name, of each kernel other than this machine's, the first worker that needs
// it; empty: none does.
type neededKernels struct{ sandboxed, vm string }

func kernelsOf(w *workshop.Workshop) (n neededKernels) {
	for i := range w.Workers {
		switch name := w.Workers[i].Name; w.Workers[i].Container.Kernel.V {
		case workshop.KernelSandboxed:
			n.sandboxed = cmp.Or(n.sandboxed, name)
		case workshop.KernelVM:
			n.vm = cmp.Or(n.vm, name)
		}
	}
	return n
}

// lacking is the first worker whose kernel can't be had, with that kernel; empty: each can.
func (n neededKernels) lacking(has map[workshop.Kernel]compose.KernelFacts) (worker string, k workshop.Kernel) {
	switch {
	case n.sandboxed != "" && has[workshop.KernelSandboxed].Mechanism == "":
		return n.sandboxed, workshop.KernelSandboxed
	case n.vm != "" && has[workshop.KernelVM].Mechanism == "":
		return n.vm, workshop.KernelVM
	}
	return "", ""
}

// lackingKernel is why an engine can't be chosen for workers with a kernel of their own.
type lackingKernel struct{ engine, why, do string }

// withKernels is the first of the engines that automatic takes on which each needed kernel
// can be had. Where there is none, the failure says what each of them lacks.
func (env *Env) withKernels(ctx context.Context, needed neededKernels, o EngineOptions) (Choice, engine.Engine, error) {
	var lacks []lackingKernel
	for _, name := range []string{promise.Docker, promise.Namespace} {
		e, lack, err := env.kernelEngine(ctx, name, needed, o)
		if err != nil || e != nil {
			return Choice{Name: name, Why: fmt.Sprintf("%s can have its kernel there", cmp.Or(needed.sandboxed, needed.vm))}, e, err
		}
		lacks = append(lacks, lack)
	}
	lines := make([]string, len(lacks))
	for i, l := range lacks {
		lines[i] = l.engine + ": " + l.why
	}
	f := Fail(CodeRefused, "nothing was started: on no engine here each worker has its kernel (B13):\n%s", strings.Join(lines, "\n"))
	for _, l := range lacks {
		if l.do != "" && l.do != engine.UseDocker && l.do != engine.UseNamespaces { // those are among them
			f.Hint("%s: %s", l.engine, l.do)
		}
	}
	return Choice{}, nil, f
}

// kernelEngine connects to an engine if each needed kernel can be had there. Its error is that
// of the context alone.
func (env *Env) kernelEngine(ctx context.Context, name string, needed neededKernels, o EngineOptions) (engine.Engine, lackingKernel, error) {
	lack := lackingKernel{engine: name}
	e, err := env.Engine(ctx, name, o)
	if err == nil {
		var info engine.Info
		if info, err = e.Info(ctx); err == nil {
			has := env.kernels(ctx, &info, needed, env.Emulate)
			worker, k := needed.lacking(has)
			if worker == "" {
				return e, lack, nil
			}
			lack.why, lack.do = fmt.Sprintf("%s can't have kernel %s: %s", worker, k, has[k].Why), has[k].Do
		}
		e.Close()
	}
	if ctx.Err() != nil {
		return nil, lack, context.Cause(ctx)
	}
	if err != nil {
		lack.why = firstLine(err)
		if hints := hintsOf(err); len(hints) > 0 {
			lack.do = hints[0]
		}
	}
	return nil, lack, nil
}

// kernelCapabilities say how an engine gives workers kernels of their own.
func (env *Env) kernelCapabilities(i engine.Info) (list []Capability) {
	if i.Kind == promise.Process {
		return nil
	}
	for _, k := range []workshop.Kernel{workshop.KernelSandboxed, workshop.KernelVM} {
		f := i.Kernel(k, env.Settings.Kernels, func() compose.KernelFacts { return machinesUnseen })
		c := Capability{Name: kernelCapability + string(k), Held: f.Mechanism != "", Meaning: cmp.Or(f.Why, "workers with it run on "+string(f.Mechanism))}
		if k == workshop.KernelSandboxed { // of vm it would be another kernel
			c.Do = f.Do
		}
		list = append(list, c)
	}
	sortfunc.Stable(list, func(a, b Capability) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// kernelCapability begins the names of [Env.kernelCapabilities].
const kernelCapability = "kernel-"

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"sync"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
)

// kernels say how an engine gives workers each of the kernels that they need.
func (env *Env) kernels(ctx context.Context, info *engine.Info, needed neededKernels, emulate bool) map[workshop.Kernel]compose.KernelFacts {
	machines := sync.OnceValue(func() compose.KernelFacts { return env.machines(ctx, emulate) })
	out := map[workshop.Kernel]compose.KernelFacts{}
	for k, worker := range map[workshop.Kernel]string{workshop.KernelSandboxed: needed.sandboxed, workshop.KernelVM: needed.vm} {
		if worker != "" {
			out[k] = info.Kernel(k, env.Settings.Kernels, machines)
		}
	}
	return out
}

// machinesUnseen are virtual machines that nobody has looked for.
var machinesUnseen = compose.KernelFacts{Why: "what virtual machines need is not looked for here", Do: "run `workshop vm check`"}

// machines finds out how this machine makes virtual machines, of the kit that the user's
// settings name.
func (env *Env) machines(ctx context.Context, emulate bool) (f compose.KernelFacts) {
	program, err := env.vmProgram()
	if err != nil {
		f.Why = firstLine(err)
		if hints := hintsOf(err); len(hints) > 0 {
			f.Do = hints[0]
		}
		return f
	}
	if env.Settings.VMKit == "" {
		return compose.KernelFacts{Why: "there is no kit for virtual machines: your settings have no vm_kit", Do: "run `workshop vm setup`"}
	}
	args := []string{"machine", "--kit", filepath.Join(env.kitsDir(), env.Settings.VMKit)}
	if emulate {
		args = append(args, "--emulate")
	}
	a, err := runVM(ctx, program, args...)
	hash := ""
	if err == nil && a.Problem == "" {
		hash, err = hashOfFile(program)
	}
	switch {
	case err != nil:
		f.Why, f.Do = firstLine(err), "run `workshop vm check`"
	case a.Problem != "":
		f.Why, f.Do = a.Problem, "run `workshop vm check`, which says what to do"
		if a.Refused {
			f.Do = "see what is missing with `workshop vm check`; `up --emulate` runs it without KVM, which is not a boundary"
		}
	case a.QEMU == nil || len(a.QEMU.Files) == 0 || a.Kit == nil:
		f.Why, f.Do = vmProgram+" said nothing of QEMU or the kit", "put the one of this version's archive there"
	default:
		f.Mechanism = compose.MechanismVM
		f.VM = &compose.VMFacts{
			Program: program, ProgramSHA256: hash, Kit: a.Dir, QEMU: a.QEMU.Files, QEMUVersion: a.QEMU.Version, QEMUSHA256: a.QEMU.SHA256, Emulated: emulate,
		}
	}
	return f
}

// maxVMProgram bounds workshop-vm, in bytes.
const maxVMProgram = 64 << 20

// hashOfFile is the SHA-256 of a program in hexadecimal.
func hashOfFile(name string) (string, error) {
	sum := sha256.New()
	if err := boundedfile.Copy(sum, name, maxVMProgram); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// startedLike is the project with virtual machines as those of it that run: one without KVM
// stays so for who starts none.
func (c *Project) startedLike(ctx context.Context, r *Running) *Project {
	if kernelsOf(c.Workshop) == (neededKernels{}) {
		return c
	}
	seen, err := r.Look(ctx, true)
	if err != nil || !slices.ContainsFunc(seen.Containers, func(c engine.Container) bool { return slices.Contains(c.NotHeld, "B13") }) {
		return c
	}
	now := *c
	now.emulated = true
	return &now
}

// RefuseEmulation refuses virtual machines without KVM where what runs is to be what a lock
// says.
func (env *Env) RefuseEmulation(s *Source) error {
	if !env.Emulate || !env.frozen(s) {
		return nil
	}
	return Fail(CodeRefused, "--emulate runs virtual machines without KVM, and --frozen gives no promise up (B13); nothing was started").Hint("leave --emulate out")
}

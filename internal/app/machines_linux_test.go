//go:build amd64

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// TestMachines: what virtual machines are made of is asked of workshop-vm, once, where a
// worker needs one and the engine may have it (B13).
func TestMachines(t *testing.T) {
	const all = `{"dir":"/kits/` + kitName + `","kit":{},"qemu":{"version":"7.2.22","sha256":"bbbb","files":["/usr/bin/qemu-system-x86_64"]}}`
	namespaces, docker := engine.Info{Kind: promise.Namespace, Arch: "amd64"}, engine.Info{Kind: promise.Docker, Arch: "amd64"}
	for _, c := range []struct {
		name, script string
		info         engine.Info
		kit          string
		needed       neededKernels
		emulate      bool
		want         string // why not; empty: it is there
		calls        string
	}{
		{"there", vmCase("machine", all, 0), namespaces, kitName, neededKernels{vm: "w"}, false, "", "machine --kit DIR\n"},
		{"emulated", vmCase("machine", all, 0), namespaces, kitName, neededKernels{vm: "w"}, true, "", "machine --kit DIR --emulate\n"},
		{"for both", vmCase("machine", all, 0), namespaces, kitName, neededKernels{vm: "w", sandboxed: "s"}, false, "", "machine --kit DIR\n"},
		{"nobody needs it", vmCase("machine", all, 0), namespaces, kitName, neededKernels{}, false, "-", ""},
		{"another engine", vmCase("machine", all, 0), docker, kitName, neededKernels{vm: "w"}, true, "this engine gives no worker a virtual machine", ""},
		{"no kit", vmCase("machine", all, 0), namespaces, "", neededKernels{vm: "w"}, false, "your settings have no vm_kit: run `workshop vm setup`", ""},
		{"no KVM", vmCase("machine", `{"problem":"pvm (B13)","refused":true}`, 1), namespaces, kitName, neededKernels{vm: "w"}, false, "pvm (B13): see what is missing with `workshop vm check`; `up --emulate`", "machine --kit DIR\n"},
		{"a changed kit", vmCase("machine", `{"problem":"kit: changed"}`, 1), namespaces, kitName, neededKernels{vm: "w"}, false, "kit: changed: run `workshop vm check`", "machine --kit DIR\n"},
		{"another version's", vmCase("machine", `{}`, 0), namespaces, kitName, neededKernels{vm: "w"}, false, "workshop-vm said nothing of QEMU or the kit", "machine --kit DIR\n"},
		{"garbage", "machine) echo text ;;", namespaces, kitName, neededKernels{vm: "w"}, false, "workshop-vm machine: invalid character", "machine --kit DIR\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := vmEnv(t, c.script)
			env.Settings.VMKit = c.kit
			f, asked := env.kernels(t.Context(), &c.info, c.needed, c.emulate)[workshop.KernelVM]
			got := f.Why + ": " + f.Do
			switch {
			case c.want == "-" && asked, c.want == "" && (f.Mechanism != compose.MechanismVM || f.VM == nil), c.want != "" && (f.Mechanism != "" || c.want != "-" && !strings.Contains(got, c.want)):
				t.Errorf("got %+v, want %q", f, c.want)
			case f.VM != nil && (f.VM.Emulated != c.emulate || f.VM.QEMUSHA256 != "bbbb" || len(f.VM.QEMU) != 1 || len(f.VM.ProgramSHA256) != 64 || filepath.Base(f.VM.Kit) != kitName):
				t.Errorf("got %+v", f.VM)
			}
			calls, _ := os.ReadFile(filepath.Join(env.Home, "calls"))
			if got := strings.ReplaceAll(string(calls), filepath.Join(env.kitsDir(), kitName), "DIR"); got != c.calls {
				t.Errorf("called %q, want %q", got, c.calls)
			}
		})
	}
}

// B46: what runs as a lock says gives no promise up.
func TestFrozenEmulatesNothing(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name    string
		emulate bool
		frozen  *bool
		refused bool
	}{{"both", true, &yes, true}, {"emulated", true, &no, false}, {"frozen", false, &yes, false}, {"no lock", true, nil, false}} {
		t.Run(c.name, func(t *testing.T) {
			env := vmEnv(t, "")
			env.Emulate, env.Settings.Frozen = c.emulate, c.frozen
			if err := env.RefuseEmulation(&Source{}); (err != nil) != c.refused || err != nil && CodeOf(err) != CodeRefused {
				t.Errorf("got %v", err)
			}
		})
	}
}

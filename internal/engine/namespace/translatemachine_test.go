package namespace

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/workshop"
)

// virtual gives workers virtual machines.
func virtual(emulated bool) func(*compose.Facts) {
	return func(f *compose.Facts) {
		f.Points = map[string]compose.PointFacts{"/work/project/src/docs": {Exists: true}, "/work/project/data/out": {Exists: true}, "/work/project/out/fixed": {Exists: true}}
		f.Kernels = map[workshop.Kernel]compose.KernelFacts{workshop.KernelVM: {Mechanism: compose.MechanismVM, VM: &compose.VMFacts{
			Program: "/usr/local/bin/workshop-vm", ProgramSHA256: "cccc", Kit: "/home/user/.local/share/workshop/vm/aaaa", QEMUVersion: "7.2.22", QEMUSHA256: "bbbb",
			QEMU: []string{"/lib64/ld-linux-x86-64.so.2", "/usr/bin/qemu-system-x86_64", "/usr/share/seabios/bios-microvm.bin"}, Emulated: emulated,
		}}}
	}
}

// machineOf is a worker's machine in a container that runs it.
func machineOf(t *testing.T, c *spec.Container) (m config.Machine) {
	t.Helper()
	if len(c.Files) != 1 || c.Files[0].Path != machineFile {
		t.Fatalf("%s: files %+v", c.Service, c.Files)
	}
	d := json.NewDecoder(strings.NewReader(c.Files[0].Data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Virtual machines are said completely, and with them what the guest makes of the worker.
func TestTranslateMachineGolden(t *testing.T) {
	for name, c := range map[string]struct{ emulated, rootless bool }{"machine": {}, "machine-emulated": {emulated: true}, "machine-rootless": {rootless: true}} {
		t.Run(name, func(t *testing.T) {
			d := engine.Desired{Compiled: compiled(t, "testdata/machine", virtual(c.emulated))}
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetIndent("", " ")
			e.SetEscapeHTML(false)
			for _, service := range []string{"alone", "outlet", "worker"} {
				s, err := translate(d, service, sample(c.rootless))
				if err != nil {
					t.Fatal(service, err)
				}
				maps.DeleteFunc(s.Labels, func(key, _ string) bool { return strings.HasSuffix(key, "hash") })
				var m any
				if d.Compiled.Roles[service] == compose.RoleWorker {
					m = machineOf(t, s)
					s.Files[0].Data = "what follows"
				}
				for _, v := range []any{s, m} {
					if err := e.Encode(v); err != nil {
						t.Fatal(err)
					}
				}
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if diff := cmp.Diff(string(want), b.String()); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// What holds for any machine's container: it has no capability, its worker's user, network,
// limits and filter, no file of the worker's but below the shares, each read-only one of them
// read-only wherever the guest is served it, and the device with KVM alone (B1–B8).
func TestTranslateMachine(t *testing.T) {
	for _, emulated := range []bool{false, true} {
		d := engine.Desired{Compiled: compiled(t, "testdata/machine", virtual(emulated))}
		plain := engine.Desired{Compiled: compiled(t, "testdata/machine", virtual(emulated))}
		f := *plain.Compiled.Facts
		f.Kernels = nil
		plain.Compiled.Facts = &f
		for _, service := range []string{"worker", "alone"} {
			s, err := translate(d, service, sample(false))
			worker, alike := translate(plain, service, sample(false))
			if err != nil || alike != nil {
				t.Fatal(err, alike)
			}
			s.Seccomp, worker.Seccomp = bytes.Repeat([]byte("8 bytes "), 2), bytes.Repeat([]byte("8 bytes "), 2)
			m := machineOf(t, s)
			m.Guest.Container.Seccomp = s.Seccomp
			for _, c := range []*spec.Container{s, &m.Guest.Container} {
				if err := container.Check(c); err != nil {
					t.Error(err)
				}
			}
			if len(s.Capabilities) > 0 || s.Process.UID != worker.Process.UID || s.Process.GID != worker.Process.GID || s.Network != worker.Network ||
				s.Limits.Memory != worker.Limits.Memory || s.Limits.CPUs != worker.Limits.CPUs || s.Limits.PIDs != compose.VMThreads || s.Limits.Unlimited || !s.Landlock {
				t.Errorf("%+v", s)
			}
			if want := map[bool][]string{false: {"kvm"}, true: nil}[emulated]; !slices.Equal(s.Devices, want) {
				t.Errorf("devices %q", s.Devices)
			}
			if g := &m.Guest.Container; g.Process.UID != worker.Process.UID || len(g.Capabilities) > 0 || g.Limits.PIDs != worker.Limits.PIDs || slices.Contains(g.Process.Args, "--relay") ||
				!slices.Equal(g.Process.Env, worker.Process.Env) || g.Limits.Memory != int64(m.MemoryMiB)<<20 || int64(m.MemoryMiB)<<20 >= s.Limits.Memory || len(s.Process.Env) > 0 {
				t.Errorf("the guest's %+v", g.Process)
			}
			at := map[string]spec.Mount{}
			for _, mount := range s.Mounts {
				at[mount.Target] = mount
				if mount.Type != spec.Bind {
					t.Errorf("%+v", mount)
				}
				writable := strings.HasPrefix(mount.Target, "/shares/rw/")
				if !mount.ReadOnly && !writable {
					t.Errorf("%s is writable", mount.Target)
				}
			}
			for i, mount := range worker.Mounts {
				if mount.Type != spec.Bind || mount.Target == compose.InitDir {
					continue
				}
				served := 0
				for target, is := range at {
					if is.Source != mount.Source || !strings.HasPrefix(target, "/shares/") {
						continue
					}
					served++
					if mount.ReadOnly && !is.ReadOnly {
						t.Errorf("%s is writable at %s", mount.Target, target)
					}
					// What was in it is in it here.
					for _, inner := range worker.Mounts[i+1:] {
						if rest, ok := strings.CutPrefix(inner.Target, mount.Target+"/"); ok && inner.Type == spec.Bind {
							if x := at[target+"/"+rest]; x.Source != inner.Source || inner.ReadOnly && !x.ReadOnly {
								t.Errorf("%s/%s: %+v, want %s", target, rest, x, inner.Source)
							}
						}
					}
				}
				if own := mount.Target == compose.DialInDir || mount.Target == compose.OutletDir; own == (served > 0) {
					t.Errorf("%s is served %d times", mount.Target, served)
				}
			}
		}
	}
}

// A user who can't open the device has no machine (B13).
func TestTranslateMachineKVM(t *testing.T) {
	m := sample(false)
	asked := 0
	m.kvm = func(service string, uid, gid uint32) error {
		asked++
		return &engine.RefusedError{Promise: "B13", Reason: service}
	}
	d := engine.Desired{Compiled: compiled(t, "testdata/machine", virtual(false))}
	if _, err := translate(d, "alone", m); err == nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	d = engine.Desired{Compiled: compiled(t, "testdata/machine", virtual(true))}
	if _, err := translate(d, "alone", m); err != nil || asked != 1 {
		t.Errorf("emulated: %v, asked %d times", err, asked)
	}
}

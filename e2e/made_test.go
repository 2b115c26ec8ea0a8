//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/app"
)

// lyingRuntime builds the runtime, and returns it and what chooses what it changes.
func lyingRuntime(t *testing.T) (program string, change func(name string)) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "workshop-e2e-runtime.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program = filepath.Join(dir, "runtime")
	if out, err := exec.Command("go", "build", "-o", program, "./runtime").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("other", "another one\n")
	return program, func(name string) { write("change", name) }
}

// TestB30_RuntimesThatLie: what a container is counts, not what its runtime is called.
func TestB30_RuntimesThatLie(t *testing.T) {
	scenario.OnlyDocker(t, "OCI runtimes")
	if !scenario.Alone(t) {
		return
	}
	program, change := lyingRuntime(t)
	scenario.NewEngine(t, "--add-runtime", "crun="+program, "--add-runtime", "other="+program)
	s := scenario.New(t, "restricted", "a runtime called crun that changes what it is asked for is found before its worker is ready")
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "    image: host\n", "    image: host\n    runtime: crun\n", 1))
	change("nothing")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	for _, tt := range []struct{ name, promise, want string }{
		{"boot id", "B30", "boot id: asked "},
		{"version", "B30", "kernel version: asked "},
		{"seccomp", "B2", "Seccomp: asked 2, found 0"},
		{"filter", "B2", "AF_ALG sockets: asked EPERM, found "},
		{"capability", "B1", "CapBnd: asked 0000000000000000, found 0000000000200000"},
		{"privileges", "B2", "NoNewPrivs: asked 1, found 0"},
		{"root", "B3", "root: asked ro, found rw"},
		{"memory", "B5", "memory: asked "},
		{"cpu", "B5", "cpus: asked "},
		{"pids", "B5", "pids: asked "},
		{"device", "B6", "devices: asked none, found kmsg"},
		{"mount", "B3", "writable mounts: asked none, found /data (tmpfs)"},
		{"writable", "B3", "mounts: asked /opt/workshop ro, found /opt/workshop rw"},
		{"size", "B3", "mounts: asked /tmp "},
		{"ipc", "B6", "ipc namespace: asked its own, found this machine's"},
		{"net", "B20", "net namespace: asked its own, found this machine's"},
		{"user", "B4", "uid: asked "},
		{"groups", "B4", "groups: asked none, found 0"},
		{"masks", "B6", "unmasked paths: asked none, found "},
		{"sys", "B6", "/proc/sys: asked ro, found rw"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, ok := s.Containers()["worker"]; ok {
				s.Remove("worker")
			}
			change(tt.name)
			d := s.Run("up")
			if d.Code != 4 || !strings.Contains(d.Err, "worker isn't what was asked of the engine: ") || !strings.Contains(d.Err, tt.want) || !strings.Contains(d.Err, tt.promise) {
				t.Errorf("exit code %d, want 4 with %s, %q:\n%s", d.Code, tt.promise, tt.want, d.Err)
			}
			if c, ok := s.Containers()["worker"]; ok {
				t.Errorf("the worker is %s", c.State)
			}
		})
	}
	change("nothing")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")

	o := scenario.New(t, "none", "another kernel is possible without a network, by the user's settings, and up says which one it is")
	home := o.TempDir()
	o.Env = append(o.Env, "XDG_CONFIG_HOME="+home)
	if err := os.MkdirAll(filepath.Join(home, "workshop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "workshop", "config.yaml"), []byte("runtimes: [other]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Write("workshop.yaml", strings.Replace(o.Read("workshop.yaml"), "    image: host\n", "    image: host\n    runtime: other\n", 1))
	change("version")
	if d := o.Up(); !strings.Contains(d.Out+d.Err, "its kernel is not this machine's, as your settings allow for the runtime other (B30): another one") {
		t.Errorf("the kernel isn't told:\n%s%s", d.Out, d.Err)
	}
	o.Remove("worker")
	change("capability")
	if d := o.Expect(4, "up"); !strings.Contains(d.Err, "CapBnd: asked 0000000000000000") {
		t.Errorf("a capability isn't found:\n%s", d.Err)
	}
}

// TestWhatIsMadeIsCompared: on an engine of this machine nothing is left out, but the
// cgroup namespace that podman has none of on version 1, and the report is for `up` alone.
func TestWhatIsMadeIsCompared(t *testing.T) {
	s := scenario.New(t, "restricted", "every container says what it is, all of it is compared, and logs don't show it")
	s.Up()
	for service := range s.Containers() {
		if n := strings.Count(s.Logs(service), "MADE mountinfo="); n != 1 {
			t.Errorf("%s said %d times what it is", service, n)
		}
	}
	if d := s.Expect(0, "logs"); strings.Contains(d.Out, "MADE ") || !strings.Contains(d.Out, "READY") {
		t.Errorf("logs:\n%s", d.Out)
	}
	var r app.EngineReport
	if err := json.Unmarshal([]byte(s.Expect(0, "capabilities", "--format", "json").Out), &r); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Capabilities {
		if c.NotChecked {
			got = append(got, c.Name)
		}
	}
	slices.Sort(got)
	var want []string
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil && scenario.TheEngine() == scenario.Podman {
		want = []string{"cgroup-namespace"}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("not checked (-want +got)\n%s", d)
	}
}

package namespace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/workshop"
)

// Environment of a run of the tests as an ordinary user.
const (
	initEnv     = "NAMESPACE_TEST_INIT" // the built workshop-init
	rootlessEnv = "NAMESPACE_TEST_ROOTLESS"
)

const ordinary = 1000

// programs are the built workshop-init, packed.
var programs = sync.OnceValues(func() (*initimage.Set, error) {
	path := os.Getenv(initEnv)
	if path == "" {
		dir, err := os.MkdirTemp("", "namespace-test")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "workshop-init")
		if err := testutil.Init(path); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return testutil.InitSet(data), nil
})

// TestAsOrdinaryUser runs the real tests of this package again without root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getenv(rootlessEnv) != "" {
		t.Skip("that is what runs")
	}
	testutil.Require(t, os.Geteuid() == 0, "it needs root to become somebody else")
	dir, err := os.MkdirTemp("", "namespace-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program, tmp, test := filepath.Join(dir, "workshop-init"), filepath.Join(dir, "tmp"), filepath.Join(dir, "namespace.test")
	if err := testutil.Init(program); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(test, self, 0o755), os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, ordinary, ordinary),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(test, "-test.run=^TestReal", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, initEnv + "=" + program, rootlessEnv + "=1", "WORKSHOP_E2E=" + os.Getenv("WORKSHOP_E2E")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestRealUp") {
		t.Errorf("%v\n%s", err, out)
	}
}

// fixture is a workshop on an engine with a state of its own.
type fixture struct {
	e    *Engine
	o    Options
	name string
	dir  string
	c    *compose.Compiled
}

func value[T any](v T) workshop.Value[T] { return workshop.Value[T]{V: v} }

// newFixture compiles a workshop of workers with the host's programs, changed by
// change.
func newFixture(t testing.TB, change func(*workshop.Workshop), workers ...string) *fixture {
	t.Helper()
	set, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	o := Options{StateDir: filepath.Join(home, "state"), CacheDir: filepath.Join(home, "cache"), Compared: engine.Compared{Dir: filepath.Join(home, "records")}, Version: "test", Init: set, WithoutLimits: os.Geteuid() != 0}
	f := &fixture{o: o, name: "ws-test", dir: t.TempDir()}
	if err := os.Chmod(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.e = f.another(t)
	info, err := f.e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range info.Findings {
		testutil.Require(t, k.Held || k.Promise == "B5" && info.Unlimited, k.Name+": "+k.Meaning)
	}
	t.Cleanup(func() { f.down(t) })
	f.compile(t, change, workers...)
	return f
}

// another is an engine of another command.
func (f *fixture) another(t testing.TB) *Engine {
	t.Helper()
	e, err := New(t.Context(), f.o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// user is whom workers run as.
func user() int {
	if os.Geteuid() != 0 {
		return os.Geteuid()
	}
	return ordinary
}

func (f *fixture) compile(t testing.TB, change func(*workshop.Workshop), workers ...string) {
	t.Helper()
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	k := workshop.Container{
		Image: value(workshop.HostImage), Pull: value(workshop.PullNever), Workdir: value("/scratch"),
		Network: workshop.Network{Mode: value(firewall.Restricted), Allow: []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts()}}},
		Tmp:     value(workshop.Size(16 << 20)), Scratch: value(workshop.Size(16 << 20)), Shm: value(workshop.Size(1 << 20)), Home: value(workshop.Size(16 << 20)),
		Resources: workshop.Resources{Memory: value(workshop.Size(128 << 20)), CPU: value(1.0), PIDs: value(int64(64)), Timeout: value(time.Minute)},
	}
	w := &workshop.Workshop{File: "workshop.yaml", Name: value(f.name), Container: k}
	for _, name := range workers {
		c := k
		c.Env = map[string]workshop.Value[string]{"NAME": value(name)}
		w.Workers = append(w.Workers, workshop.Worker{Name: name, Container: c})
	}
	if change != nil {
		change(w)
	}
	c, err := compose.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	image, volume, err := f.e.InitNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := facts.Options{
		Workshop: w, Compiled: c, Project: f.name, ProjectDir: f.dir, Home: filepath.Join(f.dir, "home"), UID: user(), GID: user(),
		Lookup: func(name string) (string, bool) { return filepath.Join(f.dir, ".run"), name == "XDG_RUNTIME_DIR" },
		Arch:   runtime.GOARCH, IPv6: true, Local: true, InitImage: image, InitVolume: volume, EngineDirs: []string{f.o.StateDir, f.o.CacheDir},
	}
	got, _, list := facts.Collect(t.Context(), o)
	if list.HasErrors() {
		t.Fatal(list)
	}
	got.RuntimeDir = filepath.Join(f.dir, ".run")
	if err := os.MkdirAll(got.RuntimeDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range compose.DialInPaths(c, got) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range compose.IdentityFiles(c, got) {
		if err := os.WriteFile(filepath.Join(got.RuntimeDir, file.Path), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if c, list = compose.WithFacts(c, got); list.HasErrors() {
		t.Fatal(list)
	}
	f.c = c
}

// directory makes one of the project for the workers, with files in it.
func (f *fixture) directory(t testing.TB, name string, files ...string) string {
	t.Helper()
	dir := filepath.Join(f.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, ordinary, ordinary); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (f *fixture) observe(t testing.TB) engine.Observed {
	t.Helper()
	o, err := f.e.Observe(t.Context(), f.name, engine.DesiredImages(engine.Desired{Compiled: f.c})...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (f *fixture) plan(t testing.TB, only ...string) *engine.Plan {
	t.Helper()
	if err := f.e.Check(t.Context(), f.c); err != nil {
		t.Fatal(err)
	}
	p, err := engine.PlanUp(engine.Desired{Compiled: f.c, Only: only}, f.observe(t))
	if err != nil {
		t.Fatal(err)
	}
	p.WaitTimeout = 20 * time.Second
	return p
}

func (f *fixture) up(t testing.TB, only ...string) *engine.Plan {
	t.Helper()
	p := f.plan(t, only...)
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatalf("up: %v\n%s", err, p)
	}
	return p
}

func (f *fixture) down(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	o, err := f.e.Observe(ctx, f.name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := engine.PlanDown(o, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(ctx, p, nil); err != nil {
		t.Error(err)
	}
	if len(p.Steps) > 0 && exists(f.e.dir(f.name)) {
		t.Error("the state of a project that is gone is left")
	}
	if err := f.e.Tidy(ctx, f.name, ""); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(f.o.StateDir); len(left) > 0 {
		t.Errorf("down leaves %v", left)
	}
}

// run runs a command of a shell in a worker.
func (f *fixture) run(t testing.TB, worker, line string) (string, int) {
	t.Helper()
	var out strings.Builder
	code, err := f.e.Exec(t.Context(), f.name, worker, engine.ExecOptions{Command: []string{"sh", "-c", line}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), code
}

func (f *fixture) container(t testing.TB, service string) engine.Container {
	t.Helper()
	all := f.observe(t).Containers
	i := slices.IndexFunc(all, func(c engine.Container) bool { return c.Service == service })
	if i < 0 {
		t.Fatalf("no container of %s", service)
	}
	return all[i]
}

// supervisors are the processes of supervisors of the project.
func (f *fixture) supervisors(t testing.TB) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscan(entry.Name(), &pid); err == nil && oursAt(pid, f.e.dir(f.name)) == nil {
			out = append(out, pid)
		}
	}
	return out
}

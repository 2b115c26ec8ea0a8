package namespace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/workshop"
)

func mount(source, target string, change func(*workshop.Mount)) func(*workshop.Workshop) {
	return func(w *workshop.Workshop) {
		m := workshop.Mount{Source: value(source), Target: value(target)}
		change(&m)
		for i := range w.Workers {
			w.Workers[i].Container.Mounts = append(w.Workers[i].Container.Mounts, m)
		}
	}
}

// A workshop with two rooms, one closed worker and a copy comes up, is left alone
// by the next up, and leaves nothing.
func TestRealUp(t *testing.T) {
	f := newFixture(t, nil)
	f.directory(t, "input", "a.txt", "sub/b.txt", ".env")
	f.directory(t, "output")
	if err := errors.Join(os.Symlink("/etc/passwd", f.dir+"/input/link"), os.Chmod(f.dir+"/input/sub", 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.dir+"/input/sub", 0o755) })
	change := func(w *workshop.Workshop) {
		mount("./output", "/output", func(m *workshop.Mount) { m.ReadWrite = true })(w)
		mount("./input", "/input", func(m *workshop.Mount) { m.Exclude = []string{".env"} })(w)
		w.Workers[1].Container.Network = workshop.Network{Mode: value(firewall.None)}
	}
	f.compile(t, change, "open", "closed")
	f.up(t)
	if again := f.plan(t); !again.Empty() {
		t.Errorf("the next up does something:\n%s", again)
	}
	if n := len(f.supervisors(t)); n != 1 {
		t.Errorf("%d supervisors", n)
	}

	out, code := f.run(t, "open", "id -u; cat /input/a.txt /input/sub/b.txt; ls -A /input; touch /output/made; touch /input/x /opt/x 2>&1; echo; echo $NAME; cat /etc/hostname")
	for _, want := range []string{"a.txtsub/b.txt", "a.txt\nlink\nsub\n", "Read-only", "\nopen\nworkshop\n"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("%d: %q isn't in %s", code, want, out)
		}
	}
	if info, err := os.Stat(f.dir + "/output/made"); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(user()) {
		t.Error("B4: ", err)
	}
	if out, _ := f.run(t, "open", "ip -o link 2>/dev/null | wc -l; getent hosts example.com || echo refused; curl -sS -m 5 http://169.254.169.254/ 2>&1"); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "refused") {
		t.Error(out)
	}
	if out, _ := f.run(t, "closed", "ip -o link 2>/dev/null | wc -l; ls /run/workshop | wc -l"); out != "1\n0\n" {
		t.Error(out)
	}
	// Who logs out may lose the runtime directory; the next up has another.
	doors := compose.DialInPaths(f.c, *f.c.Facts)
	if len(doors) != 2 {
		t.Fatalf("doors: %v", doors)
	}
	for _, door := range doors {
		if err := errors.Join(os.RemoveAll(door), os.Mkdir(door, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	f.up(t)
	if out, code := f.run(t, "open", "echo again"); code != 0 || out != "again\n" {
		t.Errorf("after another runtime directory: %d %s", code, out)
	}
	var logs bytes.Buffer
	if err := f.e.Logs(t.Context(), f.name, []string{"open"}, engine.LogsOptions{Stdout: &logs, Stderr: &logs, Prefix: true, Tail: "all"}); err != nil || !strings.HasPrefix(logs.String(), "open | READY\n") {
		t.Errorf("%v %q", err, logs.String())
	}
	f.down(t)
	if n := len(f.supervisors(t)); n != 0 {
		t.Errorf("%d supervisors are left", n)
	}
}

// A policy is given to the guard that runs, and then to its volume.
func TestRealReload(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	guard := f.container(t, "guard")
	f.compile(t, func(w *workshop.Workshop) { w.Workers[0].Container.Network.Allow = nil }, "w")
	p := f.plan(t)
	if only, more := engine.OnlyReload(p); !only {
		t.Fatalf("%v\n%s", more, p)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	conn, err := f.e.Control(t.Context(), f.name, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var state control.State
	if err := control.NewClient(conn).Do(control.Request{Op: control.OpState}, &state); err != nil || state.Digest != firewall.Digest(f.c.Policy) {
		t.Errorf("%v %+v", err, state)
	}
	if now := f.container(t, "guard"); now.ID != guard.ID || !now.Started.Equal(guard.Started) {
		t.Error("the guard was made or started again")
	}
	if o := f.observe(t); o.PolicyDigest != firewall.Digest(f.c.Policy) {
		t.Error("the file is the old one")
	}
	path := filepath.Join(f.e.dir(f.name), "volumes", f.name+"_policy", "policy.json")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o444 {
		t.Error(err, info.Mode())
	}
}

// A killed supervisor takes everything with it; what it wrote down is stale,
// and the next up repairs it (B21).
func TestRealKilledSupervisor(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	f.kill(t)
	for _, c := range f.observe(t).Containers {
		if c.State != "exited" || c.ExitCode != 137 {
			t.Errorf("%s is %s (%d)", c.Service, c.State, c.ExitCode)
		}
	}
	var stopped *engine.NotRunningError
	if _, err := f.e.Session(t.Context(), f.name, "w", ""); !errors.As(err, &stopped) {
		t.Error(err)
	}
	if _, err := f.e.Control(t.Context(), f.name, ""); !errors.As(err, &stopped) {
		t.Error(err)
	}
	f.up(t)
	if out, code := f.run(t, "w", "echo here"); code != 0 || out != "here\n" {
		t.Error(code, out)
	}
	if again := f.plan(t); !again.Empty() {
		t.Errorf("the next up does something:\n%s", again)
	}
	// Nothing needs to run for a down. It takes along what another one left.
	if err := os.MkdirAll(filepath.Join(f.o.StateDir, oldPrefix+"gone", "volumes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pid := range f.supervisors(t) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	f.down(t)
}

// stopped reports whether every thread of a process is: kill(2) waits for none.
func stopped(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		if b, err := os.ReadFile(task); err != nil || !bytes.Contains(b, []byte("State:\tT")) {
			return false
		}
	}
	return len(tasks) > 0
}

// A supervisor that doesn't answer is found without its help and killed, even
// where its socket is gone; up repairs what it left, down removes it.
func TestRealSilentSupervisor(t *testing.T) {
	was := silentTime
	silentTime = 2 * time.Second
	t.Cleanup(func() { silentTime = was })
	for name, broken := range map[string]func(dir string){
		"stopped": func(string) {}, "without a socket": func(dir string) { _ = os.Remove(dir + "/supervisor.sock") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(w *workshop.Workshop) {
				w.Workers[0].Container.Network = workshop.Network{Mode: value(firewall.None)}
			}, "w")
			f.up(t)
			stop := func() int {
				all := f.supervisors(t)
				if len(all) != 1 {
					t.Fatal(all)
				}
				if err := unix.Kill(all[0], unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				for end := time.Now().Add(10 * time.Second); !stopped(all[0]) && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				broken(f.e.dir(f.name))
				return all[0]
			}
			before := stop()
			if c := f.container(t, "w"); c.State != "dead" {
				t.Error(c.State)
			}
			f.up(t)
			if out, _ := f.run(t, "w", "echo here"); out != "here\n" {
				t.Error(out)
			}
			if stop() == before {
				t.Error("it lives on")
			}
			f.down(t)
			if n := len(f.supervisors(t)); n != 0 {
				t.Errorf("%d live on", n)
			}
		})
	}
}

// What a container says of its failure is the error, with its own words.
func TestRealNotReady(t *testing.T) {
	f := newFixture(t, nil)
	dir := f.directory(t, "output")
	f.compile(t, mount("./output", "/output", func(m *workshop.Mount) { m.ReadWrite = true }), "w")
	p := f.plan(t)
	// Nobody may write there, not even its owner.
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	err := f.e.Apply(t.Context(), p, nil)
	var told *engine.NotReadyError
	if !errors.As(err, &told) || told.Service != "w" || !strings.Contains(told.Reason, "/output") {
		t.Errorf("%v", err)
	}
	if _, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"true"}}); err == nil {
		t.Error("a command ran in a worker that isn't ready")
	}
}

// A port that another program has is named, with the worker that publishes it.
func TestRealPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Ports = []workshop.Port{{Published: value(uint16(port)), Target: value(uint16(8080))}}
	}, "w")
	err = f.e.Apply(t.Context(), f.plan(t), nil)
	var taken *engine.PortTakenError
	if !errors.As(err, &taken) || taken.Worker != "w" || taken.Address != l.Addr().String() {
		t.Fatalf("%v", err)
	}
	l.Close()
	f.up(t)
	if ports := f.container(t, "guard").Ports; len(ports) != 1 || !strings.HasPrefix(ports[0], taken.Address+"->") {
		t.Error(ports)
	}
	// A killed run's guard has it by now.
	if err := engine.CheckPort(t.Context(), f.e, f.c, taken.Address); !engine.IsConflict(err) {
		t.Errorf("the project's own: %v", err)
	}
}

// Rooms and workers that were restarted by hand are seen as what they are.
func TestRealRoomRestarted(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	c, err := f.e.find(t.Context(), f.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Stop(t.Context(), "room"), c.Start(t.Context(), "room")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ready(t.Context(), "room"); err != nil {
		t.Fatal(err)
	}
	if text := f.plan(t).String(); !strings.Contains(text, "container/ws-test-w-1: create (it is in another room)") {
		t.Error(text)
	}
	f.up(t)
	if again := f.plan(t); !again.Empty() {
		t.Errorf("%s", again)
	}
	p, err := engine.PlanRestart(engine.Desired{Compiled: f.c}, f.observe(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if again := f.plan(t); !again.Empty() {
		t.Errorf("after a restart:\n%s", again)
	}
}

// Files go in and out as the worker's user, to its memory too.
func TestRealCopy(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Network = workshop.Network{Mode: value(firewall.None)}
	}, "w")
	f.up(t)
	if out, code := f.run(t, "w", "mkdir /scratch/d && echo text >/scratch/d/file"); code != 0 {
		t.Fatal(out)
	}
	r, err := f.e.CopyFrom(t.Context(), f.name, "w", "/scratch/d")
	if err != nil {
		t.Fatal(err)
	}
	err = f.e.CopyTo(t.Context(), f.name, "w", "/tmp", r)
	r.Close()
	if out, _ := f.run(t, "w", "cat /tmp/d/file"); err != nil || out != "text\n" {
		t.Error(err, out)
	}
	if _, err := f.e.CopyFrom(t.Context(), f.name, "w", "/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestRealExec(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	for user, want := range map[string]bool{"": true, "0": false, "1": false, "0:0": false} {
		_, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"true"}, User: user})
		var refused *engine.RefusedError
		if want != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Errorf("user %q: %v", user, err)
		}
	}
	for _, service := range []string{"guard", "room"} {
		if _, err := f.e.Exec(t.Context(), f.name, service, engine.ExecOptions{Command: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "workers only") {
			t.Errorf("%s: %v", service, err)
		}
	}
	var foreign *engine.ForeignError
	if _, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"true"}, Directory: "/elsewhere"}); !errors.As(err, &foreign) {
		t.Error(err)
	}
	if code, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"/nothing"}}); code != 127 || err == nil {
		t.Error(code, err)
	}
	if code, err := f.e.Exec(t.Context(), f.name, "w", engine.ExecOptions{Command: []string{"sh", "-c", "exit 7"}}); code != 7 || err != nil {
		t.Error(code, err)
	}
	var none *engine.NotRunningError
	if _, err := f.e.Exec(t.Context(), f.name, "x", engine.ExecOptions{Command: []string{"true"}}); !errors.As(err, &none) {
		t.Error(err)
	}
}

// What a killed run had asked for is a conflict, after which a new plan does it: its
// supervisor begins, its containers appear, end and go.
func TestRealConflicts(t *testing.T) {
	f := newFixture(t, nil, "w")
	changed := func(what string, p *engine.Plan, change func()) {
		t.Helper()
		change()
		if err := f.e.Apply(t.Context(), p, nil); !engine.IsConflict(err) {
			t.Errorf("%s: %v", what, err)
		}
		f.up(t)
	}
	ask := func(do func(*client.Client) error) {
		t.Helper()
		c, err := f.e.find(t.Context(), f.name)
		if err == nil {
			err = do(c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	changed("containers appear", f.plan(t), func() { f.up(t) })
	changed("a worker ends", f.plan(t), func() { ask(func(c *client.Client) error { return c.Stop(t.Context(), "w") }) })
	changed("a worker goes", f.plan(t), func() { ask(func(c *client.Client) error { return c.Remove(t.Context(), "w") }) })
	if err := f.e.start(f.name); !engine.IsConflict(err) {
		t.Errorf("a second supervisor: %v", err)
	}
}

// A run that is interrupted leaves what the next one goes on from.
func TestRealInterrupted(t *testing.T) {
	f := newFixture(t, nil, "w")
	ctx, cancel := context.WithCancel(t.Context())
	err := f.e.Apply(ctx, f.plan(t), func(ev engine.Event) {
		if ev.Step.Op == engine.OpCreateContainer && ev.Status == engine.StepDone {
			cancel()
		}
	})
	if err == nil {
		t.Fatal("it went on")
	}
	f.up(t)
	if again := f.plan(t); !again.Empty() {
		t.Errorf("%s", again)
	}
}

// The B5 of containers that were made without limits is shown, and they are
// made anew where there are some.
func TestRealUnlimited(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	missing := f.e.groups().err
	c := f.container(t, "w")
	if missing == nil {
		if len(c.NotHeld) != 0 {
			t.Error(c.NotHeld)
		}
		return
	}
	if len(c.NotHeld) != 1 || c.NotHeld[0] != "B5" {
		t.Error(c.NotHeld)
	}
	f.o.WithoutLimits = false
	f.e = f.another(t)
	wanted := engine.ConfigHash(engine.Desired{Compiled: f.c}, "w")
	if o := f.container(t, "w"); o.ConfigHash != wanted {
		t.Error("a container without limits isn't what is wanted where there are none")
	}
	none := f.e.limits
	f.e.limits = func() (cgroup.Limits, error) { return cgroup.Limits{}, nil }
	if o := f.container(t, "w"); o.ConfigHash == wanted {
		t.Error("a container without limits is what is wanted with them")
	}
	f.e.limits = none
	info, err := f.e.Info(t.Context())
	if err != nil || info.Unlimited || info.Limits.Memory && info.Limits.CPU && info.Limits.PIDs {
		t.Errorf("%v %+v", err, info)
	}
}

// Names of volumes come from the project, and what is removed lies in its own
// directory.
func TestRemoveVolume(t *testing.T) {
	e, err := New(t.Context(), Options{StateDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", ".", "", "a/b", "../x"} {
		if err := e.removeVolume("p", name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
}

// What a project's supervisor can enforce counts, whoever asks: it may have been
// started in other control groups than the caller's.
func TestRealLimitsOfTheSupervisor(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	missing := f.e.groups().err
	f.o.Project, f.o.WithoutLimits = f.name, false
	ask := func(machine error) error {
		e := f.another(t)
		e.groups = func() groups { return groups{err: machine} }
		_, err := e.limits()
		return err
	}
	nowhere := &cgroup.Unavailable{Missing: []cgroup.Missing{{Limit: cgroup.CPU, Why: "of the machine"}}}
	if err := ask(nowhere); (err == nil) != (missing == nil) {
		t.Errorf("its supervisor has limits: %t; %v", missing == nil, err)
	}
	// A supervisor without limits is one whose state says so; it may write its own
	// once more, and then it is asked again.
	askWithout := func(machine error) (err error) {
		state, without := filepath.Join(f.e.dir(f.name), api.StateName), []byte(`"limits":false`)
		for range 20 {
			b, e := os.ReadFile(state)
			if e == nil {
				e = os.WriteFile(state, bytes.Replace(b, []byte(`"limits":true`), without, 1), 0o600)
			}
			if e != nil {
				t.Fatal(e)
			}
			err = ask(machine)
			if b, e := os.ReadFile(state); e == nil && bytes.Contains(b, without) {
				return err
			}
		}
		t.Fatal("the supervisor writes its state again and again")
		return nil
	}
	if err := askWithout(nowhere); !errors.Is(err, nowhere) {
		t.Errorf("neither has: %v", err)
	}
	if err := askWithout(nil); err == nil || !strings.Contains(err.Error(), "`workshop down`") {
		t.Errorf("it has none, and a new one would: %v", err)
	}
	// Another command's supervisor that only just begins has written nothing yet.
	state := filepath.Join(f.e.dir(f.name), api.StateName)
	if err := os.Rename(state, state+".away"); err != nil {
		t.Fatal(err)
	}
	if err := ask(nil); err != nil {
		t.Errorf("it begins: %v", err)
	}
	if err := os.Rename(state+".away", state); err != nil {
		t.Fatal(err)
	}
	if err := f.e.end(t.Context(), f.name); err != nil {
		t.Fatal(err)
	}
	if err := ask(nil); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

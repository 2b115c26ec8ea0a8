package docker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

func TestUpAgainDown(t *testing.T) {
	f := newFixture(t, nil, "one", "two")
	first := f.up(t)
	if first.Empty() {
		t.Fatal("nothing to do at the first up")
	}
	for _, s := range []string{"one", "two", "room", "guard"} {
		if c := f.container(t, s); c.State != "running" {
			t.Errorf("%s is %s", s, c.State)
		}
	}
	room := f.container(t, "room")
	if w := f.container(t, "one"); w.NetworkOf != room.ID {
		t.Errorf("one is in the network of %q, want the room's", w.NetworkOf)
	}
	// Nothing changed: nothing is done.
	if again := f.plan(t); !again.Empty() {
		t.Errorf("second up:\n%s", again)
	}
	f.up(t)
	f.down(t)
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("down left %v", left)
	}
}

func TestUpTellsWhyAWorkerIsNotReady(t *testing.T) {
	for env, want := range map[string]string{
		"FAKE_FAIL": "no right to write", "FAKE_END": "exit code 3): last words", "FAKE_SILENT": "not ready after",
	} {
		t.Run(env, func(t *testing.T) {
			f := newFixture(t, func(w *workshop.Workshop) {
				w.Workers[0].Container.Env[env] = value("no right to write")
			}, "one")
			p := f.plan(t)
			p.WaitTimeout = 3 * time.Second
			err := f.e.Apply(t.Context(), p, nil)
			var nr *engine.NotReadyError
			if !errors.As(err, &nr) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "-one-1") {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestRoomTakesItsWorkersAlong(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	guard, room, one := f.container(t, "guard"), f.container(t, "room"), f.container(t, "one")
	if err := f.e.cli.ContainerKill(t.Context(), room.ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	f.up(t)
	if f.container(t, "guard").ID != guard.ID {
		t.Error("the guard was made anew")
	}
	if f.container(t, "room").ID == room.ID || f.container(t, "one").ID == one.ID {
		t.Error("room or worker stayed")
	}
	if f.container(t, "one").NetworkOf != f.container(t, "room").ID {
		t.Error("the worker is in another room")
	}
}

func TestOneWorkerAndOrphans(t *testing.T) {
	f := newFixture(t, nil, "one", "two")
	f.up(t, "one")
	if _, err := f.e.one(t.Context(), f.name, "two"); err == nil {
		t.Error("two was made")
	}
	f.up(t)
	f.compile(t, nil, "two")
	f.up(t)
	if _, err := f.e.one(t.Context(), f.name, "one"); err == nil {
		t.Error("the orphan stayed")
	}
}

func TestExitedGuardAndWorkerAreStarted(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	for _, s := range []string{"guard", "one"} {
		if err := f.e.cli.ContainerStop(t.Context(), f.container(t, s).ID, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := f.container(t, "one").ID
	f.up(t)
	if c := f.container(t, "one"); c.ID != before || c.State != "running" {
		t.Errorf("one: %+v", c)
	}
}

// A container that runs already is known to be ready by its log, also after a
// restart, and not by the log of the run before.
func TestSaidReady(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {}, "one")
	f.up(t)
	for _, s := range []string{"one", "room", "guard"} {
		if !f.e.said(t.Context(), f.container(t, s).ID).ready {
			t.Errorf("%s: not seen", s)
		}
	}
	id := f.container(t, "one").ID
	if err := f.e.cli.ContainerStop(t.Context(), id, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if f.e.said(t.Context(), id).ready {
		t.Error("stopped, and seen as ready")
	}
	f.up(t)
	if !f.e.said(t.Context(), id).ready {
		t.Error("started again, and not seen")
	}
}

// A container whose start is still on its way for a killed run, so that its words
// come before they are listened to, is found ready in its log.
func TestStartedBefore(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	id := f.container(t, "one").ID
	if err := f.e.cli.ContainerStop(t.Context(), id, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	p := f.plan(t)
	if err := f.e.cli.ContainerStart(t.Context(), id, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !f.e.said(t.Context(), id).ready && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Error(err)
	}
}

// A volume that the engine makes for a container of a killed run, which was created
// after a down, is the project's.
func TestVolumeOfALateContainer(t *testing.T) {
	f := newFixture(t, nil, "one")
	if _, _, err := f.e.PrepareInit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := f.plan(t)
	p.Steps = []engine.Step{{ID: 1, Op: engine.OpCreateContainer, Target: "container/room", Service: "room"}}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if o := f.observe(t); len(o.Volumes) != 1 || o.Volumes[0].Labels[engine.LabelVolume] != compose.SocketsVolume {
		t.Errorf("volumes: %v", o.Volumes)
	}
	f.up(t)
	f.down(t)
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("down left %v", left)
	}
	// Another one's is refused.
	name := engine.VolumeName(f.c.Project, compose.PolicyVolume)
	if _, err := f.e.cli.VolumeCreate(t.Context(), volume.CreateOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.e.cli.VolumeRemove(context.Background(), name, true) })
	if err := f.e.Apply(t.Context(), f.plan(t), nil); err == nil || !strings.Contains(err.Error(), "docker volume rm "+name) {
		t.Errorf("with another one's volume: %v", err)
	}
}

func TestNameIsTaken(t *testing.T) {
	f := newFixture(t, nil, "one")
	if _, _, err := f.e.PrepareInit(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err := f.e.createHelper(t.Context(), helper{name: engine.ContainerName(f.c.Project, "one")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.e.removeHelper(id) })
	err = f.e.Apply(t.Context(), f.plan(t), nil)
	if err == nil || !strings.Contains(err.Error(), "exists and doesn't belong to the project") {
		t.Errorf("err = %v", err)
	}
}

func TestRestart(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	before := f.inspect(t, "one").State.StartedAt
	p, err := engine.PlanRestart(engine.Desired{Compiled: f.c}, f.observe(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if f.inspect(t, "one").State.StartedAt == before {
		t.Error("it was not restarted")
	}
}

// Interrupted after every second step, up is repaired by the next one, and
// down leaves nothing.
func TestInterruptedAnywhere(t *testing.T) {
	f := newFixture(t, nil, "one")
	steps := len(f.plan(t).Steps)
	for n := 0; n < steps; n += 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := 0
		p := f.plan(t)
		err := f.e.Apply(ctx, p, func(ev engine.Event) {
			if ev.Status == engine.StepDone {
				if done++; done > n {
					cancel(context.Canceled)
				}
			}
		})
		cancel(nil)
		if n < steps-1 && err == nil {
			t.Logf("after %d steps: was through already", n)
		}
		if n%6 == 0 {
			f.up(t)
			if c := f.container(t, "one"); c.State != "running" {
				t.Errorf("after %d steps: one is %s", n, c.State)
			}
		}
		f.down(t)
		if left := f.leftovers(t); len(left) > 0 {
			t.Errorf("after %d steps, down left %v", n, left)
		}
	}
}

func TestToolVolumeIsVerified(t *testing.T) {
	f := newFixture(t, nil, "one")
	// A program of its own, so that no other test's volume is meant.
	program, _ := fakeInit()
	program = append(bytes.Clone(program), t.Name()...)
	f.e.init = testutil.InitSet(program)
	f.compile(t, nil, "one")
	// Of the same size and mode: only the hash tells.
	evil := bytes.Clone(program)
	evil[len(evil)-1]++
	volume := f.c.Facts.InitVolume
	t.Cleanup(func() {
		f.down(t)
		_ = f.e.cli.VolumeRemove(context.Background(), volume, true)
		_, _ = f.e.cli.ImageRemove(context.Background(), f.c.Facts.InitImage, removeImage)
	})
	_, _, err := f.e.PrepareInit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spoil := func() {
		err := f.e.withHelper(t.Context(), helper{mount: volume, at: toolsDir}, func(id string) error {
			return f.e.cli.CopyToContainer(t.Context(), id, toolsDir, tarOf(t, "workshop-init", string(evil)), container.CopyToContainerOptions{})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	here, err := f.e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Both ways of reading it: on this machine, and through the engine.
	for _, local := range []bool{here.Local, false} {
		i := here
		i.Local = local
		f.e.info = func(context.Context) (engine.Info, error) { return i, nil }
		if err := f.e.verifyTools(t.Context(), volume, nil); err != nil {
			t.Fatalf("local %v: verify = %v", local, err)
		}
		spoil()
		if err := f.e.verifyTools(t.Context(), volume, nil); !errors.Is(err, errTools) {
			t.Fatalf("local %v: verify = %v", local, err)
		}
		if _, _, err := f.e.PrepareInit(t.Context()); err != nil {
			t.Fatalf("local %v: repair = %v", local, err)
		}
	}
	spoil()
	f.up(t) // nothing uses it: made anew
	spoil()
	err = f.e.Apply(t.Context(), f.plan(t), nil)
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a wrong tool volume in use: %v", err)
	}
}

func TestTwoUpsFillTheToolVolumeOnce(t *testing.T) {
	e := realEngine(t)
	program, _ := fakeInit()
	e.init = testutil.InitSet(append(bytes.Clone(program), t.Name()...))
	image, volume, err := e.InitNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.cli.VolumeRemove(context.Background(), volume, true)
		_, _ = e.cli.ImageRemove(context.Background(), image, removeImage)
	})
	errs := make(chan error)
	for range 3 {
		go func() {
			_, _, err := e.PrepareInit(t.Context())
			errs <- err
		}()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

package docker

import (
	"context"
	"slices"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// others makes what a docker-compose.yml of the project's name would, whose
// container has the label of ours from its image.
func others(t *testing.T, f *fixture) (here func() []string) {
	t.Helper()
	ctx := context.Background()
	image, err := f.e.loadInit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := func(label, value string) map[string]string {
		return map[string]string{engine.LabelProject: f.name, label: value}
	}
	data, net, name := f.name+"_pgdata", f.name+"_back", f.name+"_db_1"
	if _, err := f.e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: data, Labels: of(engine.LabelVolume, "pgdata")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.e.cli.VolumeRemove(ctx, data, true) })
	made, err := f.e.cli.NetworkCreate(ctx, net, network.CreateOptions{Labels: of(engine.LabelNetwork, "back")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.e.cli.NetworkRemove(ctx, made.ID) })
	labels := of(engine.LabelService, "db")
	labels[engine.LabelWorkingDir], labels[compose.LabelDirectory] = f.dir, f.dir
	if _, err := f.e.cli.ContainerCreate(ctx, &container.Config{Image: image, Entrypoint: []string{"/workshop-init"}, Labels: labels}, nil, nil, nil, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.e.cli.ContainerRemove(ctx, name, container.RemoveOptions{Force: true}) })
	return func() []string {
		var gone []string
		for what, look := range map[string]func() error{
			data: func() error { _, err := f.e.cli.VolumeInspect(ctx, data); return err },
			net:  func() error { _, err := f.e.cli.NetworkInspect(ctx, made.ID, network.InspectOptions{}); return err },
			name: func() error { _, err := f.e.cli.ContainerInspect(ctx, name); return err },
		} {
			if err := look(); cerrdefs.IsNotFound(err) {
				gone = append(gone, what)
			} else if err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(gone)
		return gone
	}
}

// What a docker-compose.yml of the project's name made stays, whatever is done.
func TestOthersOfTheName(t *testing.T) {
	f := newFixture(t, nil, "one")
	gone := others(t, f)
	d := engine.Desired{Compiled: f.c}
	for what, plan := range map[string]func() (*engine.Plan, error){
		"up":      func() (*engine.Plan, error) { return engine.PlanUp(d, f.observe(t)) },
		"down":    func() (*engine.Plan, error) { return engine.PlanDown(f.observe(t), f.dir) },
		"down -p": func() (*engine.Plan, error) { return engine.PlanDown(f.observe(t), "") },
	} {
		if p, err := plan(); err == nil {
			t.Errorf("%s is not refused:\n%s", what, p)
			_ = f.e.Apply(t.Context(), p, nil)
		}
	}
	if _, err := f.e.one(t.Context(), f.name, "db"); err == nil {
		t.Error("a container that isn't ours is a worker")
	}
	if gone := gone(); len(gone) > 0 {
		t.Errorf("removed: %v", gone)
	}
}

// An image that says of its containers that they are helpers hides no worker.
func TestImageSaysHelper(t *testing.T) {
	f := newFixture(t, nil, "one")
	if _, err := f.e.loadInit(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := f.e.cli.ContainerCreate(t.Context(), &container.Config{Image: f.c.Facts.InitImage, Entrypoint: []string{"/workshop-init"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.e.removeHelper(made.ID) })
	ref := f.name + ":labelled"
	if _, err := f.e.cli.ContainerCommit(t.Context(), made.ID, container.CommitOptions{Reference: ref, Config: &container.Config{
		Labels: map[string]string{engine.LabelHelper: "1", engine.LabelOneOff: "True"}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = f.e.cli.ImageRemove(context.Background(), ref, removeImage) })
	f.compile(t, func(w *workshop.Workshop) { w.Workers[0].Container.Image = value(ref) }, "one")
	f.up(t)
	if c := f.container(t, "one"); c.Helper || c.OneOff {
		t.Errorf("a helper: %+v", c)
	}
	if _, err := f.e.look(t.Context(), f.name, "one"); err != nil {
		t.Error(err)
	}
	if again := f.plan(t); !again.Empty() {
		t.Errorf("second up:\n%s", again)
	}
}

// Theirs comes when ours is up: ours can be taken down, and theirs stays.
func TestOthersBesideOurs(t *testing.T) {
	f := newFixture(t, nil, "one")
	f.up(t)
	gone := others(t, f)
	p, err := engine.PlanDown(f.observe(t), f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("down left %v", left)
	}
	if gone := gone(); len(gone) > 0 {
		t.Errorf("removed: %v", gone)
	}
}

package docker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

func contextOf(t *testing.T, dir, dockerfile string) []string {
	t.Helper()
	var b bytes.Buffer
	if _, _, err := writeContext(t.Context(), &b, dir, dockerfile); err != nil {
		t.Fatal(err)
	}
	return testutil.TarNames(t, b.Bytes())
}

func TestContextHonoursDockerignore(t *testing.T) {
	dir := testutil.Tree(t, "Dockerfile", "a.txt", "node_modules/x/y", "logs/a.log", "logs/keep.log", "docker/Dockerfile")
	ignore := "node_modules\nlogs/*\n!logs/keep.log\nDockerfile\ndocker\n"
	if err := os.WriteFile(filepath.Join(dir, ".dockerignore"), []byte(ignore), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := contextOf(t, dir, "Dockerfile"), []string{".dockerignore", "Dockerfile", "a.txt", "logs/", "logs/keep.log"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := contextOf(t, dir, "docker/Dockerfile"); !slices.Contains(got, "docker/Dockerfile") || slices.Contains(got, "Dockerfile") {
		t.Errorf("%v", got)
	}
	if _, _, err := writeContext(t.Context(), &bytes.Buffer{}, dir, "Nothing"); err == nil || !strings.Contains(err.Error(), "no Dockerfile") {
		t.Errorf("err = %v", err)
	}
	if _, _, err := writeContext(t.Context(), &bytes.Buffer{}, dir, "../x"); err == nil {
		t.Error("a Dockerfile outside of the context was accepted")
	}
}

func TestBuild(t *testing.T) {
	f := newFixture(t, nil, "one", "two")
	dir := filepath.Join(f.dir, "image")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Dockerfile", "FROM scratch\nARG name\nCOPY hello.txt /hello.txt\nLABEL name=$name\n")
	write("hello.txt", "built")
	f.compile(t, func(w *workshop.Workshop) {
		for i := range w.Workers {
			c := &w.Workers[i].Container
			c.Image = value("")
			c.Build = &workshop.Build{Context: value("image"), Dockerfile: value("Dockerfile"), Args: map[string]workshop.Value[string]{"name": value("x")}}
		}
	}, "one", "two")

	builds, err := Builds(t.Context(), f.c)
	if err != nil {
		t.Fatal(err)
	}
	if len(builds) != 1 || !slices.Equal(builds[0].Services, []string{"one", "two"}) || builds[0].Files != 2 {
		t.Fatalf("builds = %+v", builds)
	}
	plan := func() *engine.Plan {
		t.Helper()
		d := engine.Desired{Compiled: f.c, Builds: Hashes(builds)}
		o, err := f.e.Observe(t.Context(), f.name, engine.DesiredImages(d)...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := engine.PlanUp(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ref := engine.ImageRef(engine.Desired{Compiled: f.c, Builds: Hashes(builds)}, "one")
	t.Cleanup(func() {
		f.down(t)
		_, _ = f.e.cli.ImageRemove(context.Background(), ref, removeImage)
	})

	refused := errors.New("no")
	f.e.opts.ApproveBuild = func(_ context.Context, b Build) error {
		if b.Hash != builds[0].Hash {
			t.Errorf("asked about %s", b.Hash)
		}
		return refused
	}
	if err := f.e.Apply(t.Context(), plan(), nil); !errors.Is(err, refused) {
		t.Fatalf("err = %v", err)
	}
	if left := f.leftovers(t); len(left) > 0 {
		t.Errorf("a refused build left %v", left)
	}
	f.e.opts.ApproveBuild = func(context.Context, Build) error { return nil }

	// What was agreed to is what is built.
	p := plan()
	write("hello.txt", "changed")
	if err := f.e.Apply(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("changed context: %v", err)
	}
	write("hello.txt", "built")

	lines := 0
	if err := f.e.Apply(t.Context(), plan(), func(ev engine.Event) {
		if ev.Step.Op == engine.OpBuildImage && ev.Status == engine.StepProgress {
			lines++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if lines == 0 {
		t.Error("no output of the build")
	}
	if again := plan(); !again.Empty() {
		t.Errorf("built again:\n%s", again)
	}
	write("hello.txt", "other")
	after, err := Builds(t.Context(), f.c)
	if err != nil || after[0].Hash == builds[0].Hash {
		t.Errorf("another content, the same hash (%v)", err)
	}
}

package docker

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
)

func TestStartOf(t *testing.T) {
	const id, ended = "0123", "2026-11-28T11:22:33.123456789Z"
	boot := made.BootID()
	if want := id + " " + ended + " " + boot; startOf(id, ended) != want || boot == "" {
		t.Errorf("got %s, want %s", startOf(id, ended), want)
	}
}

// What somebody else than `up` starts takes no command until it is compared with what was
// asked for, by its own report of that start.
func TestComparedSinceItsStart(t *testing.T) {
	f := newFixture(t, nil, "one", "two")
	f.up(t)
	notCompared := func() (services []string) {
		for _, c := range f.observe(t).Containers {
			if c.NotCompared {
				services = append(services, c.Service)
			}
		}
		return services
	}
	restart := func(service string) container.InspectResponse {
		t.Helper()
		id := f.container(t, service).ID
		if err := f.e.cli.ContainerRestart(t.Context(), id, container.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); !f.e.said(t.Context(), id).ready && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		var refused *engine.RefusedError
		if _, err := f.e.running(t.Context(), f.name, service, ""); service != "guard" && !errors.As(err, &refused) {
			t.Errorf("%s was started again: %v", service, err)
		}
		if got := notCompared(); len(got) != 1 || got[0] != service {
			t.Errorf("not compared: %q, want %s", got, service)
		}
		return f.inspect(t, service)
	}
	if got := notCompared(); got != nil {
		t.Fatalf("after up, not compared: %q", got)
	}
	for _, service := range []string{"one", "guard"} {
		before := restart(service)
		f.up(t)
		if i := f.inspect(t, service); i.ID != before.ID || i.State.StartedAt != before.State.StartedAt {
			t.Errorf("%s isn't as it was", service)
		}
		if got := notCompared(); got != nil {
			t.Errorf("after up, not compared: %q", got)
		}
	}
	if _, err := f.e.running(t.Context(), f.name, "one", ""); err != nil {
		t.Error(err)
	}
	other, err := New(t.Context(), Options{Lookup: os.LookupEnv, Compared: engine.Compared{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.running(t.Context(), f.name, "one", ""); err == nil {
		t.Error("what another user compared counts")
	}

	i := restart("one") // and doesn't say what was asked for
	text, err := os.ReadFile(i.LogPath)
	if err != nil {
		t.Fatal(err)
	}
	wrong := regexp.MustCompile(`(limits=[^\\]*) 64(\\u001f)`).ReplaceAll(text, []byte(`$1 65$2`))
	if err := os.WriteFile(i.LogPath, wrong, 0); err != nil || bytes.Equal(text, wrong) {
		t.Fatal(err, "no report")
	}
	var refused *engine.RefusedError
	if err := f.e.Apply(t.Context(), f.plan(t), nil); !errors.As(err, &refused) || refused.Promise != "B5" {
		t.Errorf("one that isn't what was asked for: %v", err)
	}
	if _, err := f.e.one(t.Context(), f.name, "one"); !isNotRunning(err) {
		t.Errorf("it stays: %v", err)
	}

	i = restart("two") // and nobody knows what it said
	w, err := f.e.lookAt(t.Context(), i.ID, f.name, "two")
	if err == nil {
		err = os.RemoveAll(w.dialIn) // the stand-in comes to none
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(i.LogPath, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.e.Apply(t.Context(), f.plan(t, "two"), nil); !engine.IsConflict(err) {
		t.Errorf("without a report: %v", err)
	}
	if p := f.plan(t, "two"); !p.Starts("two") {
		t.Errorf("the next plan keeps it:\n%s", p)
	}
}

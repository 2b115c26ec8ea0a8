package docker

import (
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/llmdo/workshop/workshop"
)

// TestWritersAreHeld: B7: a worker that runs, and may write where another one's
// mounts are, can exchange nothing between the last look at them and the start.
func TestWritersAreHeld(t *testing.T) {
	f := newFixture(t, func(w *workshop.Workshop) {
		w.Workers[0].Container.Mounts = []workshop.Mount{{Source: value("output"), Target: value("/output"), ReadWrite: true}}
	}, "one", "two", "reader")
	writable(t, f, "output")
	f.up(t)
	if err := f.e.cli.ContainerRemove(t.Context(), f.container(t, "two").ID, container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	befell := func(service string) (seen []events.Action) {
		t.Helper()
		until := time.Now()
		stream, errs := f.e.cli.Events(t.Context(), events.ListOptions{
			Since: until.Add(-time.Hour).Format(time.RFC3339), Until: until.Format(time.RFC3339Nano),
			Filters: filters.NewArgs(filters.Arg("container", f.container(t, service).ID), filters.Arg("event", "pause"), filters.Arg("event", "unpause")),
		})
		for {
			select {
			case e := <-stream:
				seen = append(seen, e.Action)
			case <-errs:
				return seen
			}
		}
	}
	one := f.container(t, "one")
	f.up(t)
	if got, want := befell("one"), []events.Action{"pause", "unpause"}; !slices.Equal(got, want) {
		t.Errorf("the one that may write: %v, want %v", got, want)
	}
	if got := befell("reader"); got != nil {
		t.Errorf("the one that may not: %v, want nothing", got)
	}
	if k := f.container(t, "one"); k.ID != one.ID || k.State != "running" {
		t.Errorf("after it: %+v", k)
	}
}

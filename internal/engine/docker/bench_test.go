package docker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sync/errgroup"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// BenchmarkUp is up and down of N workers in one room on a real engine, beside
// the floor: create and start of the same containers and nothing else, four
// at a time. The init is the stand-in, so that the engine is measured, not it.
func BenchmarkUp(b *testing.B) {
	for _, n := range []int{1, 5, 20} {
		var workers []string
		for i := range n {
			workers = append(workers, fmt.Sprintf("w%d", i))
		}
		b.Run(fmt.Sprint("ours/", n), func(b *testing.B) {
			f := newFixture(b, nil, workers...)
			var up, down time.Duration
			for range b.N {
				start := time.Now()
				f.up(b)
				up += time.Since(start)
				start = time.Now()
				f.down(b)
				down += time.Since(start)
			}
			b.ReportMetric(float64(up.Milliseconds())/float64(b.N), "up-ms")
			b.ReportMetric(float64(down.Milliseconds())/float64(b.N), "down-ms")
		})
		b.Run(fmt.Sprint("floor/", n), func(b *testing.B) {
			f := newFixture(b, nil, workers...)
			f.up(b) // networks, volumes, images
			p := f.plan(b)
			var up time.Duration
			for range b.N {
				for _, c := range f.observe(b).Containers {
					f.e.removeHelper(c.ID)
				}
				start := time.Now()
				f.floor(b, p)
				up += time.Since(start)
			}
			b.ReportMetric(float64(up.Milliseconds())/float64(b.N), "up-ms")
		})
	}
}

func (f *fixture) floor(b *testing.B, p *engine.Plan) {
	b.Helper()
	make1 := func(ctx context.Context, service, room string) (string, error) {
		t, err := translate(p.Desired, service, room, "")
		if err != nil {
			return "", err
		}
		c, err := f.e.cli.ContainerCreate(ctx, t.config, t.host, t.network, nil, t.name)
		if err != nil {
			return "", err
		}
		return c.ID, f.e.cli.ContainerStart(ctx, c.ID, container.StartOptions{})
	}
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(4)
	g.Go(func() error { _, err := make1(ctx, "guard", ""); return err })
	room, err := make1(b.Context(), "room", "")
	if err != nil {
		b.Fatal(err)
	}
	for _, service := range workersOf(f.c) {
		g.Go(func() error { _, err := make1(ctx, service, room); return err })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

func workersOf(c *compose.Compiled) []string {
	var out []string
	for _, s := range sortedKeys(c.Project.Services) {
		if c.Roles[s] == compose.RoleWorker {
			out = append(out, s)
		}
	}
	return out
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/client"
)

// upDown measures up and down of n workers in one room: ours, Compose on the
// generated project, and the same containers by plain calls.
func (b *bench) upDown(sizes string) error {
	plugin, err := b.needCompose()
	if err != nil {
		return err
	}
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer docker.Close()
	if err := b.importImage(); err != nil {
		return err
	}
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := b.upDownOf(n, plugin, docker); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) upDownOf(n int, plugin string, docker *client.Client) error {
	name := fmt.Sprintf("bench-up-%d", n)
	dir, err := b.workers(name, n)
	if err != nil {
		return err
	}
	peer := name + "-peer"
	at, args, err := b.generated(dir, peer)
	if err != nil {
		return err
	}
	if err := fastHealth(filepath.Join(at, "compose.yaml")); err != nil {
		return err
	}
	// the template stays up: its containers say what the floor must make
	template := name + "-template"
	if _, err := b.timed(dir, nil, b.workshop(), "-p", template, "up"); err != nil {
		return err
	}
	defer b.timed(dir, nil, b.workshop(), "-p", template, "down")
	floor, err := newFloor(b.ctx, docker, template)
	if err != nil {
		return err
	}
	defer b.timed(dir, nil, b.workshop(), "-p", name, "down")
	defer b.timed(at, nil, plugin, append(args, "down", "-v")...)
	defer floor.down()
	var up, down [3][]float64
	rounds := max(3, b.rounds*5/max(5, n))
	for round := -1; round < rounds; round++ {
		for i, pair := range [][2]func() (time.Duration, error){
			{
				func() (time.Duration, error) { return b.timed(dir, nil, b.workshop(), "-p", name, "up") },
				func() (time.Duration, error) { return b.timed(dir, nil, b.workshop(), "-p", name, "down") },
			},
			{
				func() (time.Duration, error) {
					return b.timed(at, nil, plugin, append(args, "up", "-d", "--wait", "--quiet-pull")...)
				},
				func() (time.Duration, error) { return b.timed(at, nil, plugin, append(args, "down", "-v")...) },
			},
			{floor.up, floor.down},
		} {
			for j, f := range pair {
				d, err := f()
				if err != nil {
					return err
				}
				if round < 0 {
					continue
				}
				to := &up[i]
				if j == 1 {
					to = &down[i]
				}
				*to = append(*to, float64(d.Microseconds())/1000)
			}
		}
	}
	limit := map[int]float64{1: 0.5, 5: 0.55, 20: 0.6}[n]
	b.add(row{what: fmt.Sprintf("up, %d workers", n), against: "compose v2 up -d --wait", ours: median(up[0]), other: median(up[1]), unit: "ms", limit: limit,
		note: "the peer's health checks run every 100 ms here, in the generated file every 5 s: its best case"})
	b.add(row{what: fmt.Sprintf("up, %d workers", n), against: "create + start by API, concurrency 4", ours: median(up[0]), other: median(up[2]), unit: "ms", limit: 1.2})
	b.add(row{what: fmt.Sprintf("down, %d workers", n), against: "compose v2 down", ours: median(down[0]), other: median(down[1]), unit: "ms", limit: 0.8})
	b.add(row{what: fmt.Sprintf("down, %d workers", n), against: "remove by API, concurrency 4", ours: median(down[0]), other: median(down[2]), unit: "ms"})
	return nil
}

// fastHealth lets the peer find out as soon as it can that all is ready.
func fastHealth(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(b)
	for _, interval := range []string{"interval: 5s", `interval: "5s"`} {
		text = strings.ReplaceAll(text, interval, "interval: 100ms")
	}
	if text == string(b) {
		return fmt.Errorf("%s: no health check interval to shorten", file)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

//go:build linux

package main

import (
	"time"

	"github.com/llmdo/workshop/compose"
)

// execs measures one command in a worker, whole processes.
func (b *bench) execs() error {
	if err := b.importImage(); err != nil {
		return err
	}
	dir, err := b.workers("bench-exec", 1)
	if err != nil {
		return err
	}
	if _, err := b.timed(dir, nil, b.workshop(), "up"); err != nil {
		return err
	}
	defer b.timed(dir, nil, b.workshop(), "down")
	command := []string{compose.InitPath, "probe", "help"}
	m, err := interleave(21,
		func() (time.Duration, error) {
			return b.timed(dir, nil, b.workshop(), append([]string{"exec", "worker-0000", "--"}, command...)...)
		},
		func() (time.Duration, error) {
			return b.timed(dir, nil, "docker", append([]string{"exec", "bench-exec-worker-0000-1"}, command...)...)
		})
	if err != nil {
		return err
	}
	b.add(row{what: "workshop exec", against: "docker exec", ours: m[0], other: m[1], unit: "ms", limit: 0.25,
		note: "whole processes: a session with the toolbox against the engine's exec"})
	return nil
}

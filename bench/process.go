//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"time"
)

// processes measures whole runs of the programs without an engine.
func (b *bench) processes() error {
	empty := filepath.Join(b.dir, "empty")
	if _, err := b.timed(filepath.Dir(b.bin), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", empty, "./bench/empty"); err != nil {
		return err
	}
	version, err := interleave(21,
		func() (time.Duration, error) { return b.timed(b.dir, nil, b.workshop(), "--version") },
		func() (time.Duration, error) { return b.timed(b.dir, nil, empty, "--version") })
	if err != nil {
		return err
	}
	b.add(row{what: "workshop --version", against: "empty program, the same packages", ours: version[0], other: version[1], unit: "ms", limit: 1.3})

	plugin, err := b.needCompose()
	if err != nil {
		return err
	}
	if err := b.importImage(); err != nil {
		return err
	}
	dir, err := b.workers("bench-validate", 5)
	if err != nil {
		return err
	}
	at, args, err := b.generated(dir, "bench-validate")
	if err != nil {
		return err
	}
	measured := []func() (time.Duration, error){
		func() (time.Duration, error) { return b.timed(dir, nil, b.workshop(), "validate") },
		func() (time.Duration, error) { return b.timed(at, nil, plugin, append(args, "config", "-q")...) },
	}
	old, oldErr := exec.LookPath("docker-compose")
	if oldErr == nil {
		measured = append(measured, func() (time.Duration, error) { return b.timed(at, nil, old, append(args, "config", "-q")...) })
	}
	validate, err := interleave(11, measured...)
	if err != nil {
		return err
	}
	b.add(row{what: "workshop validate, 5 workers", against: "compose v2 config", ours: validate[0], other: validate[1], unit: "ms", limit: 0.25})
	if oldErr == nil {
		b.add(row{what: "workshop validate, 5 workers", against: "docker-compose 1.29 config", ours: validate[0], other: validate[2], unit: "ms", limit: 0.05})
	}
	return nil
}

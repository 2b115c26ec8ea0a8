//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/e2e/ownengine"
)

// startPodman starts podman as root, and returns what the programs need to find it.
func (b *bench) startPodman() (env []string, stop func(), err error) {
	if err := b.need("podman=podman", "/usr/lib/podman/netavark=netavark", "runc=runc"); err != nil {
		return nil, nil, err
	}
	config := filepath.Join(b.dir, "podman-config")
	if err := ownengine.AcceptPodman(filepath.Join(config, "workshop", "config.yaml")); err != nil {
		return nil, nil, err
	}
	p, err := ownengine.NewPodman(true)
	if err != nil {
		return nil, nil, err
	}
	return []string{"CONTAINER_HOST=" + p.Host, "XDG_CONFIG_HOME=" + config}, func() {
		if err := p.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: podman: left behind:", err)
		}
	}, nil
}

// podman measures podman as root against Docker.
func (b *bench) podman(sizes string) error {
	env, stop, err := b.startPodman()
	if err != nil {
		return err
	}
	defer stop()
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := b.podmanBesideDocker(n, env); err != nil {
			return err
		}
	}
	return nil
}

// podmanBesideDocker measures up, exec and down of n workers in one room on both engines.
func (b *bench) podmanBesideDocker(n int, env []string) (err error) {
	dir, err := b.hostWorkers(fmt.Sprintf("bench-podman-%d", n), n)
	if err != nil {
		return err
	}
	do := func(engine string, args ...string) func() error {
		return func() error {
			_, err := b.timed(dir, env, b.workshop(), append([]string{"--engine", engine}, args...)...)
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, do("podman", "down")(), do("docker", "down")())
		}
	}()
	var all []contender
	for _, engine := range []string{"podman", "docker"} {
		all = append(all, contender{do(engine, "up"), 1}, contender{do(engine, "exec", "worker-0000", "--", "/bin/true"), 10}, contender{do(engine, "down"), 1})
	}
	t, err := b.compete(max(5, b.rounds*5/max(5, n)), all...)
	if err != nil {
		return err
	}
	for i, verb := range []struct {
		name  string
		limit float64
	}{{"up", 1.3}, {"exec -- true", 1}, {"down", 0}} {
		b.add(row{what: fmt.Sprintf("%s, %d workers, podman", verb.name, n), against: "the same on docker", ours: t[i].median(), other: t[i+3].median(), unit: "ms", limit: verb.limit, note: quarters(t[i], t[i+3])})
	}
	return nil
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/llmdo/workshop/e2e/breaks"
)

// checkedWorkers are those of the workshop whose containers are checked.
const checkedWorkers = 5

// checks measures what the two checks of containers cost, of what an engine stored and of
// what it made: up of this program, and of one that is built without them.
func (b *bench) checks() error {
	without, err := b.unchecked()
	if err != nil {
		return err
	}
	env, stop, err := b.startPodman()
	if err != nil {
		return err
	}
	defer stop()
	dir, err := b.hostWorkers("bench-checks", checkedWorkers)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		engine string
		rounds int
	}{{"namespace", 101}, {"docker", 21}, {"podman", 21}} {
		if err := b.checksOn(c.engine, dir, env, without, max(c.rounds, b.rounds)); err != nil {
			return err
		}
	}
	return nil
}

// unchecked builds workshop without the checks.
func (b *bench) unchecked() (string, error) {
	edit, err := breaks.Read(filepath.Join("e2e", "breaks", breaks.Unchecked))
	if err != nil {
		return "", err
	}
	src := filepath.Join(b.dir, "unchecked")
	for _, step := range []func(string) error{breaks.Copy, edit.Apply, breaks.Build} {
		if err := step(src); err != nil {
			return "", err
		}
	}
	return filepath.Join(src, "bin", "workshop"), nil
}

func (b *bench) checksOn(engine, dir string, env []string, without string, rounds int) (err error) {
	do := func(program, verb string) func() error {
		return func() error {
			_, err := b.timed(dir, env, program, "--engine", engine, verb)
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, do(b.workshop(), "down")())
		}
	}()
	t, err := b.compete(rounds, contender{do(b.workshop(), "up"), 1}, contender{do(b.workshop(), "down"), 1}, contender{do(without, "up"), 1}, contender{do(without, "down"), 1})
	if err != nil {
		return err
	}
	b.add(row{what: fmt.Sprintf("up, %d workers, %s: both checks", checkedWorkers, engine), against: "the same without them", ours: t[0].median(), other: t[2].median(), unit: "ms", limit: 1.03,
		note: quarters(t[0], t[2])})
	return nil
}

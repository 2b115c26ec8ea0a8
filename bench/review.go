//go:build linux

package main

import "time"

// reviewWorkers are those of the workshop that is compared.
const reviewWorkers = 100

// review measures what a pull request is checked with, against validate of the same.
func (b *bench) review() error {
	dir, err := b.hostWorkers("bench-review", reviewWorkers)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{b.workshop(), "lock"},
		{"git", "init", "-q"},
		{"git", "add", "-A"},
		{"git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false", "commit", "-qm", "measured"},
	} {
		if _, err := b.timed(dir, nil, args[0], args[1:]...); err != nil {
			return err
		}
	}
	measure := func(args ...string) func() (time.Duration, error) {
		return func() (time.Duration, error) { return b.timed(dir, nil, b.workshop(), args...) }
	}
	times, err := interleave(21, measure("validate"), measure("lock", "--check"), measure("diff", "--base", "HEAD"))
	if err != nil {
		return err
	}
	b.add(row{what: "lock --check, 100 workers", against: "validate of the same", ours: times[1], other: times[0], unit: "ms", limit: 5})
	b.add(row{what: "diff --base HEAD, 100 workers", against: "validate of the same", ours: times[2], other: times[0], unit: "ms", limit: 5})
	return nil
}

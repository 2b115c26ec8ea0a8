//go:build linux

package main

import (
	"os"
	"path/filepath"
)

const mega = 1_000_000

// sizes measures the size of the programs, and the time of a build.
func (b *bench) sizes(clean bool) error {
	for _, s := range []struct {
		name  string
		limit float64
	}{{"workshop", 32}, {"llmdo", 48}, {"workshop-init-linux-amd64", 12}, {"workshop-init-linux-arm64", 12}} {
		info, err := os.Stat(filepath.Join(b.bin, s.name))
		if err != nil {
			return err
		}
		b.add(row{what: "size of " + s.name, against: "its limit", ours: float64(info.Size()) / mega, other: s.limit, unit: "MB", limit: 1})
	}
	if !clean {
		return nil
	}
	cache := filepath.Join(b.dir, "gocache")
	took, err := b.timed(filepath.Dir(b.bin), []string{"GOCACHE=" + cache}, "make", "build")
	if err != nil {
		return err
	}
	b.add(row{what: "make build, empty cache", against: "its limit", ours: took.Seconds(), other: 180, unit: "s", limit: 1})
	return nil
}

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is what all parts share.
type bench struct {
	ctx    context.Context
	bin    string // of the repository
	dir    string // for projects
	rounds int
	rows   []row
	// soakFor is how long the parts soak and kills run.
	soakFor time.Duration
}

// row is one line of the table.
type row struct {
	what, against string
	ours, other   float64
	unit          string
	limit         float64 // the ratio ours/other must not pass; 0: none
	note          string
}

func main() {
	b := &bench{}
	flag.StringVar(&b.bin, "bin", "bin", "directory of the built programs")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of the engine scenarios")
	only := flag.String("only", "", "parts to run, separated by commas: process, review, scale, network, updown, tools, namespace, podman, kernel, vm, checks, run, work, many, size (default all of these), soak, kills, kvm")
	flag.DurationVar(&b.soakFor, "for", 10*time.Minute, "how long the parts soak and kills run")
	sizes := flag.String("n", "1,5,20", "numbers of workers for up and down")
	clean := flag.Bool("clean-build", false, "also measure a build with an empty cache (minutes)")
	flag.Parse()
	var stop func()
	b.ctx, stop = signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := b.run(*only, *sizes, *clean); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only, sizes string, clean bool) (err error) {
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "workshop-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return err
	}
	parts := []struct {
		name string
		do   func() error
	}{
		{"process", b.processes},
		{"review", b.review},
		{"scale", b.scale},
		{"network", b.network},
		{"updown", func() error { return b.upDown(sizes) }},
		{"tools", b.tools},
		{"namespace", func() error { return b.namespaces(sizes) }},
		{"podman", func() error { return b.podman(sizes) }},
		{"kernel", b.kernel},
		{"vm", b.emulated},
		{"checks", b.checks},
		{"run", b.oneOff},
		{"work", b.work},
		{"many", b.many},
		{"size", func() error { return b.sizes(clean) }},
		{"soak", b.soak},
		{"kills", b.kills},
		{"kvm", b.kvm},
	}
	for _, p := range parts {
		// These run when they are asked for: they take long, or need what few machines have.
		if (only != "" || slices.Contains([]string{"soak", "kills", "kvm"}, p.name)) && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", p.name)
		if err := p.do(); err != nil {
			// the measurements so far are still shown
			b.print()
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.print()
	return nil
}

// needCompose builds the peer once.
func (b *bench) needCompose() (string, error) {
	cmd := exec.CommandContext(b.ctx, filepath.Join(filepath.Dir(b.bin), "scripts/compose-v2"))
	cmd.Env, cmd.Stderr = append(os.Environ(), "WORKSHOP_BIN="+b.bin), os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the plugin: %w", err)
	}
	return filepath.Join(b.bin, "docker-compose-v2"), nil
}

// interleave runs each function in turn, rounds times, after one warm-up, and
// returns the median of each in milliseconds.
func interleave(rounds int, do ...func() (time.Duration, error)) ([]float64, error) {
	all := make([][]float64, len(do))
	for round := -1; round < rounds; round++ {
		for i, f := range do {
			d, err := f()
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				all[i] = append(all[i], float64(d.Microseconds())/1000)
			}
		}
	}
	out := make([]float64, len(do))
	for i := range all {
		slices.Sort(all[i])
		out[i] = all[i][len(all[i])/2]
	}
	return out, nil
}

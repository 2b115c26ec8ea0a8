// Command demo shows a workshop at work: it brings one worker up beside a test
// internet of its own, lets the worker try what it may and what it may not, and
// prints what the worker saw, beside what an ordinary container of the same
// engine sees of the same try. It exits with 1 when one line is not as it
// should be.
//
// It needs a Docker engine that it may use, and nothing else: `make demo`.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

//go:embed project
var project embed.FS

func main() {
	bin := flag.String("bin", "bin", "directory of the built programs")
	keep := flag.Bool("keep", false, "leave everything up, to look around")
	raw := flag.Bool("json", false, "print the probes' own lines too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	failed, err := run(ctx, *bin, *keep, *raw)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
		os.Exit(1)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "demo: %d lines are not as they should be\n", failed)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, keep, raw bool) (failed int, err error) {
	if bin, err = filepath.Abs(bin); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "workshop-demo-")
	if err != nil {
		return 0, err
	}
	s := &stage{ctx: ctx, bin: bin, dir: dir, raw: raw}
	defer func() {
		if keep && err == nil {
			fmt.Printf("\nLeft up in %s (workshop -f %s/project/workshop.yaml ps).\n", dir, dir)
			return
		}
		s.close()
	}()
	for _, step := range []func() error{s.copyProject, s.startInternet, s.up} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return s.show()
}

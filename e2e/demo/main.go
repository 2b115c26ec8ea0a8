// Command demo shows a workshop at work: it brings one worker up beside a test
// internet of its own, lets the worker try what it may and what it may not, and
// prints what the worker saw, beside what an ordinary process of the same
// machine, or container of the same engine, sees of the same try. It exits with
// 1 when one line is not as it should be.
//
// Without Docker (-engine namespace, the default) it makes a machine of its own
// around itself: a network namespace, and a user namespace for who isn't root. With
// -engine docker it needs an engine that it may use. `make demo` runs it.
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
	engine := flag.String("engine", "namespace", "the engine that runs the workshop: namespace or docker")
	raw := flag.Bool("json", false, "print the probes' own lines too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s := &stage{ctx: ctx, raw: *raw, engine: *engine}
	switch *engine {
	case "docker":
		s.beside = &container{}
	case "namespace":
		if os.Getenv(within) == "" {
			os.Exit(machine(ctx))
		}
		s.beside = &process{}
	default:
		fmt.Fprintf(os.Stderr, "demo: no engine %q: there are namespace and docker\n", *engine)
		os.Exit(2)
	}
	failed, err := run(s, *bin, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
		os.Exit(1)
	}
	if failed > 0 {
		fmt.Fprintf(os.Stderr, "demo: %d lines are not as they should be\n", failed)
		os.Exit(1)
	}
}

func run(s *stage, bin string, keep bool) (failed int, err error) {
	if s.bin, err = filepath.Abs(bin); err != nil {
		return 0, err
	}
	if s.dir, err = os.MkdirTemp("", "workshop-demo-"); err != nil {
		return 0, err
	}
	defer func() {
		if keep && err == nil {
			fmt.Printf("\nLeft up in %s (workshop -f %s/project/workshop.yaml ps).\n", s.dir, s.dir)
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

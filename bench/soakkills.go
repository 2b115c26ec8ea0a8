//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"time"
)

// kills kills commands at a random moment, and expects that the next one works at
// once: after each an up or a down, for as long as -for says.
func (b *bench) kills() error {
	engines := []string{"namespace"}
	if exec.CommandContext(b.ctx, "docker", "version").Run() == nil {
		engines = append(engines, "docker")
	}
	var problems []error
	for _, engine := range engines {
		problems = append(problems, b.killsOn(engine, b.soakFor/time.Duration(len(engines))))
	}
	return errors.Join(problems...)
}

// killed are the commands, each with what comes before it.
var killed = []struct{ before, verb string }{{"down", "up"}, {"up", "down"}, {"up", "restart"}}

func (b *bench) killsOn(engine string, limit time.Duration) error {
	dir, err := b.hostWorkers("bench-kills-"+engine, 2)
	if err != nil {
		return err
	}
	run := func(verb string) (time.Duration, error) {
		return b.timed(dir, nil, b.workshop(), b.onEngine(engine, verb)...)
	}
	defer run("down")
	whole := map[string]time.Duration{} // what each takes that isn't killed
	for _, verb := range []string{"up", "restart", "down", "up"} {
		if whole[verb], err = run(verb); err != nil {
			return err
		}
	}
	rounds, failures, slowest := 0, 0, time.Duration(0)
	var first []error
	for start := time.Now(); time.Since(start) < limit && b.ctx.Err() == nil; rounds++ {
		k := killed[rand.IntN(len(killed))]
		if _, err := run(k.before); err != nil {
			return err
		}
		after := time.Duration(rand.Int64N(int64(whole[k.verb]) * 11 / 10))
		if err := b.killAfter(dir, after, b.onEngine(engine, k.verb)); err != nil {
			return err
		}
		heals := []string{"up", "up", "down"}[rand.IntN(3)]
		took, err := run(heals)
		slowest = max(slowest, took)
		if err == nil && heals == "up" {
			_, err = b.timed(dir, nil, b.workshop(), "--engine", engine, "exec", "worker-0000", "--", "true")
		}
		if err != nil {
			failures++
			first = append(first, fmt.Errorf("%s: %s killed after %v, then %s: %w", engine, k.verb, after, heals, err))
		}
	}
	fmt.Printf("%s: %d commands were killed, %d of the next ones failed; the slowest took %.1f s\n", engine, rounds, failures, slowest.Seconds())
	return errors.Join(first[:min(len(first), 5)]...)
}

func (b *bench) onEngine(engine, verb string) []string {
	args := []string{"--engine", engine, verb}
	if verb == "up" {
		args = append(args, "--without-limits") // where there are some, they hold
	}
	return args
}

// killAfter starts workshop and kills it.
func (b *bench) killAfter(dir string, after time.Duration, args []string) error {
	cmd := exec.CommandContext(b.ctx, b.workshop(), args...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// workers writes a workshop of n workers in one room.
func (b *bench) workers(name string, n int) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "workers"), 0o755); err != nil {
		return "", err
	}
	var y strings.Builder
	fmt.Fprintf(&y, "workshop:\n  name: %s\n  container:\n    image: %s\n    pull: never\n    network: {mode: restricted, allow: [allowed.example.org, ssh.example.org:22], dns: [198.51.100.53]}\n    resources: {memory: 128M, cpu: 0.5, pids: 64}\n  workers:\n", name, benchImage)
	for i := range n {
		w := fmt.Sprintf("worker-%04d", i)
		fmt.Fprintf(&y, "    - %s\n", w)
		text := fmt.Sprintf("---\nname: %s\ndescription: Measures nothing itself.\nallowed-tools: Read\n---\nYou are measured.\n", w)
		if err := os.WriteFile(filepath.Join(dir, "workers", w+".md"), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, os.WriteFile(filepath.Join(dir, "workshop.yaml"), []byte(y.String()), 0o644)
}

// hostWorkers is workers on this machine's programs.
func (b *bench) hostWorkers(name string, n int) (string, error) {
	dir, err := b.workers(name, n)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "workshop.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text = []byte(strings.Replace(string(text), "image: "+benchImage+"\n    pull: never", "image: host", 1))
	return dir, os.WriteFile(file, text, 0o644)
}

// timed runs a program and returns how long the whole process took.
func (b *bench) timed(dir string, env []string, name string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		return took, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return took, nil
}

func (b *bench) workshop() string { return filepath.Join(b.bin, "workshop") }

// generated compiles and loads a workshop for plain Compose, and returns its
// directory and the arguments that come before the verb.
func (b *bench) generated(dir, project string) (at string, args []string, err error) {
	cmd := exec.CommandContext(b.ctx, b.workshop(), "-p", project, "compile", "--load")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", nil, fmt.Errorf("compile --load: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	_, line, ok := strings.Cut(lines[len(lines)-1], "compose ") // of docker compose or docker-compose
	if !ok {
		return "", nil, fmt.Errorf("compile --load prints no command: %q", out)
	}
	args = strings.Fields(strings.TrimSuffix(line, " up"))
	return filepath.Join(dir, ".workshop", filepath.Base(dir)), args, nil
}

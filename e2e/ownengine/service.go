//go:build linux

// Package ownengine starts engines for scenarios and benchmarks, each with its own socket and
// data.
package ownengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// Service is an engine's process that this run started. All that the engine keeps is below
// Dir, and Dir stands on the command lines of its helpers.
type Service struct {
	Dir  string
	Host string // as DOCKER_HOST has it
	Argv []string
	Env  []string // nil: this process's
	cmd  *exec.Cmd
	done chan struct{}
}

// At is a path in its directory.
func (e *Service) At(name string) string { return filepath.Join(e.Dir, name) }

// Start starts it, again after [Service.Stop], and returns when it answers.
func (e *Service) Start() error {
	log, err := os.OpenFile(e.At("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	_ = os.Remove(e.At("docker.pid")) // of one that was killed
	e.cmd = exec.Command(e.Argv[0], e.Argv[1:]...)
	e.cmd.Env = e.Env
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		return err
	}
	e.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(e.cmd, e.done)
	c, err := e.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err = c.Ping(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-e.done:
			end = time.Now()
		default:
		}
	}
	b, _ := os.ReadFile(e.At("log"))
	return fmt.Errorf("%s does not start: %w\n%s", e.Argv[0], err, b[max(0, len(b)-3000):])
}

// Client connects to it.
func (e *Service) Client() (*client.Client, error) {
	return client.NewClientWithOpts(client.WithHost(e.Host), client.WithAPIVersionNegotiation())
}

// Stop ends the process: SIGTERM as at a shutdown, SIGKILL as in a crash. podman's
// containers go on.
func (e *Service) Stop(signal syscall.Signal) error {
	_ = e.cmd.Process.Signal(signal)
	select {
	case <-e.done:
	case <-time.After(60 * time.Second):
		_ = e.cmd.Process.Kill()
		<-e.done
		return fmt.Errorf("%s does not end after %v", e.Argv[0], signal)
	}
	// dockerd's containerd dies with it. Where nobody reaps orphans, dockerd would
	// take the zombie for one that runs.
	file := e.At("exec/containerd/containerd.pid")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	pid := strings.TrimSpace(string(b))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + pid + "/stat")
		if _, state, ok := strings.Cut(string(status), ") "); err != nil || ok && state[0] == 'Z' {
			return os.Remove(file)
		}
	}
	return fmt.Errorf("containerd %s does not end with its dockerd", pid)
}

// Remove ends it with all that it has and what it started, by their process IDs.
func (e *Service) Remove() error {
	if c, err := e.Client(); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		all, _ := c.ContainerList(ctx, container.ListOptions{All: true})
		for range 2 { // on podman a room goes after those that joined it
			for _, k := range all {
				_ = c.ContainerRemove(ctx, k.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
			}
		}
		cancel()
		c.Close()
	}
	err := e.Stop(syscall.SIGTERM)
	e.killRest()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	var below []string
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], e.Dir+"/") {
			below = append(below, f[1])
		}
	}
	slices.Sort(below)
	for _, m := range slices.Backward(below) {
		_ = syscall.Unmount(m, syscall.MNT_DETACH)
	}
	return errors.Join(err, os.RemoveAll(e.Dir))
}

// killRest ends what outlives it: containerd and shims of a dockerd that was killed, with
// the containers' main processes, which are the shims' children, and the monitors of
// podman's commands, which wait for minutes.
func (e *Service) killRest() {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		name, _, _ := strings.Cut(string(b), "\x00")
		name = filepath.Base(name)
		shim := strings.HasPrefix(name, "containerd")
		if !shim && name != "conmon" && name != "podman" || !strings.Contains(string(b), e.Dir+"/") {
			continue
		}
		dir := filepath.Dir(file)
		if shim {
			lists, _ := filepath.Glob(dir + "/task/*/children")
			for _, list := range lists {
				children, _ := os.ReadFile(list)
				for _, child := range strings.Fields(string(children)) {
					Kill(child)
				}
			}
		}
		Kill(filepath.Base(dir))
	}
}

// Kill ends a process by its ID.
func Kill(pid string) {
	if n, err := strconv.Atoi(pid); err == nil && n > 1 {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

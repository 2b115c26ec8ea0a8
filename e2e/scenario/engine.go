//go:build linux

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/pkg/stdcopy"
)

func (s *Scenario) filter(more ...filters.KeyValuePair) filters.Args {
	return filters.NewArgs(append(more, filters.Arg("label", "com.docker.compose.project="+s.Project))...)
}

// Containers lists the project's containers by service.
func (s *Scenario) Containers() map[string]container.Summary {
	s.Helper()
	all, err := s.Docker.ContainerList(context.Background(), container.ListOptions{All: true, Filters: s.filter()})
	if err != nil {
		s.Fatal(err)
	}
	out := map[string]container.Summary{}
	for _, c := range all {
		out[c.Labels["com.docker.compose.service"]] = c
	}
	return out
}

// Inspect returns what the engine says of a service's container.
func (s *Scenario) Inspect(service string) container.InspectResponse {
	s.Helper()
	c, ok := s.Containers()[service]
	if !ok {
		s.Fatalf("the project has no container of %s", service)
	}
	i, err := s.Docker.ContainerInspect(context.Background(), c.ID)
	if err != nil {
		s.Fatal(err)
	}
	return i
}

// Pid is the process ID of a service's main process on this machine.
func (s *Scenario) Pid(service string) int {
	s.Helper()
	return s.Inspect(service).State.Pid
}

// Kill sends a signal to a service's container.
func (s *Scenario) Kill(service, signal string) {
	s.Helper()
	if err := s.Docker.ContainerKill(context.Background(), s.Inspect(service).ID, signal); err != nil {
		s.Fatal(err)
	}
}

// Crash kills a service's main process from outside. The engine sees it end by
// itself, and not as stopped by a person, which its restart policy tells apart.
func (s *Scenario) Crash(service string) {
	s.Helper()
	if err := syscall.Kill(s.Pid(service), syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
}

// tryExec runs a command in a container, as the container's user, and returns
// its standard output. It doesn't go through our programs.
func (s *Scenario) tryExec(id string, o container.ExecOptions) (string, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o.AttachStdout, o.AttachStderr = true, true
	e, err := s.Docker.ContainerExecCreate(ctx, id, o)
	if err != nil {
		return "", 0, err
	}
	a, err := s.Docker.ContainerExecAttach(ctx, e.ID, container.ExecAttachOptions{})
	if err != nil {
		return "", 0, err
	}
	defer a.Close()
	var out, errs bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &errs, a.Reader); err != nil {
		return "", 0, err
	}
	i, err := s.Docker.ContainerExecInspect(ctx, e.ID)
	if err != nil {
		return "", 0, err
	}
	if errs.Len() > 0 {
		return out.String(), i.ExitCode, fmt.Errorf("%s: %s", strings.Join(o.Cmd, " "), errs.String())
	}
	return out.String(), i.ExitCode, nil
}

// Logs returns what a service printed.
func (s *Scenario) Logs(service string) string {
	s.Helper()
	c, ok := s.Containers()[service]
	if !ok {
		return ""
	}
	return s.logs(c.ID)
}

func (s *Scenario) logs(id string) string {
	r, err := s.Docker.ContainerLogs(context.Background(), id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, r); err != nil && err != io.EOF {
		return out.String() + err.Error()
	}
	return out.String()
}

// Event is one line of the guard, as a map: the test names what it needs.
type Event map[string]any

// Events are the JSON lines that the guard has printed.
func (s *Scenario) Events() []Event {
	s.Helper()
	var out []Event
	for line := range strings.Lines(s.Logs("guard")) {
		e := Event{}
		if json.Unmarshal([]byte(line), &e) == nil {
			out = append(out, e)
		}
	}
	return out
}

// Eventually asks again and again until the check is true.
func (s *Scenario) Eventually(what string, check func() bool) {
	s.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if check() {
			return
		}
	}
	s.Fatalf("never came true: %s", what)
}

// Leftovers lists containers, networks and volumes of the project.
func (s *Scenario) Leftovers() []string {
	s.Helper()
	var out []string
	for name := range s.Containers() {
		out = append(out, "container "+name)
	}
	nets, err := s.Docker.NetworkList(context.Background(), network.ListOptions{Filters: s.filter()})
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range nets {
		out = append(out, "network "+n.Name)
	}
	vols, err := s.Docker.VolumeList(context.Background(), volume.ListOptions{Filters: s.filter()})
	if err != nil {
		s.Fatal(err)
	}
	for _, v := range vols.Volumes {
		out = append(out, "volume "+v.Name)
	}
	return out
}

// removeAll removes every object of the project by its labels.
func (s *Scenario) removeAll() {
	ctx := context.Background()
	if all, err := s.Docker.ContainerList(ctx, container.ListOptions{All: true, Filters: s.filter()}); err == nil {
		for _, c := range all {
			_ = s.Docker.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	if nets, err := s.Docker.NetworkList(ctx, network.ListOptions{Filters: s.filter()}); err == nil {
		for _, n := range nets {
			_ = s.Docker.NetworkRemove(ctx, n.ID)
		}
	}
	if vols, err := s.Docker.VolumeList(ctx, volume.ListOptions{Filters: s.filter()}); err == nil {
		for _, v := range vols.Volumes {
			_ = s.Docker.VolumeRemove(ctx, v.Name, true)
		}
	}
	// Runtime directories, which `down` would have removed.
	for _, parent := range []string{"/run/workshop", fmt.Sprintf("/dev/shm/workshop-%d", os.Getuid()), fmt.Sprintf("/run/user/%d/workshop", os.Getuid())} {
		dirs, _ := filepath.Glob(filepath.Join(parent, s.Project+"-*"))
		for _, dir := range dirs {
			_ = os.RemoveAll(dir)
		}
	}
}

// dump writes what a person needs to understand a failure.
func (s *Scenario) dump() {
	for name, c := range s.Containers() {
		logs := s.logs(c.ID)
		if len(logs) > 4000 {
			logs = "…" + logs[len(logs)-4000:]
		}
		s.Logf("%s: %s (%s)\n%s", name, c.State, c.Status, logs)
	}
}

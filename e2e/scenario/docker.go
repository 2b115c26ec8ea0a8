//go:build linux

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-units"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/probe"
)

// dockerMachine is a Docker engine, or podman.
type dockerMachine struct {
	client *client.Client
	podman *ownengine.Podman  // nil on Docker
	own    *ownengine.Service // a dockerd of the run's own, or nil
	caller *caller

	mu       sync.Mutex
	ordinary string // ID of the container of control
}

func newDockerMachine(l *Lab) (*dockerMachine, error) {
	var p *ownengine.Podman
	var own *ownengine.Service
	if TheEngine() == Podman {
		var err error
		if p, err = ownengine.NewPodman(false); err != nil {
			return nil, err
		}
		if err := os.Setenv("DOCKER_HOST", p.Host); err != nil { // for everything that the run does
			return nil, err
		}
	} else if ownDocker() {
		var err error
		if own, err = newDockerWithGVisor(); err != nil {
			return nil, err
		}
	}
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := c.Ping(ctx); err != nil {
		return nil, fmt.Errorf("no Docker engine answers (scripts/with-engine starts one): %w", err)
	}
	return &dockerMachine{client: c, podman: p, own: own, caller: &l.caller}, nil
}

func ofProject(project string) filters.Args {
	return filters.NewArgs(filters.Arg("label", "com.docker.compose.project="+project))
}

// isGone reports whether podman was asked for a container that was removed meanwhile.
func (m *dockerMachine) isGone(err error) bool {
	return m.podman != nil && err != nil && strings.Contains(err.Error(), "does not exist in database")
}

func (m *dockerMachine) list(project string) (out []Container, err error) {
	ctx := context.Background()
	all, err := m.client.ContainerList(ctx, container.ListOptions{All: true, Filters: ofProject(project)})
	for end := time.Now().Add(5 * time.Second); m.isGone(err) && time.Now().Before(end); {
		// podman's list fails when a container is removed meanwhile.
		all, err = m.client.ContainerList(ctx, container.ListOptions{All: true, Filters: ofProject(project)})
	}
	if err != nil {
		return nil, err
	}
	for _, seen := range all {
		i, err := m.client.ContainerInspect(ctx, seen.ID)
		if cerrdefs.IsNotFound(err) || m.isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c := Container{ID: i.ID, Service: seen.Labels["com.docker.compose.service"], State: i.State.Status, Pid: i.State.Pid, Started: i.State.StartedAt, Log: Log{Path: i.LogPath}}
		for _, m := range i.Mounts {
			c.Mounts = append(c.Mounts, Mount{m.Source, m.Destination, string(m.Type)})
		}
		if l := i.HostConfig.LogConfig; l.Type == "json-file" {
			c.Log.MaxSize, _ = units.RAMInBytes(l.Config["max-size"])
			c.Log.MaxFiles, _ = strconv.Atoi(l.Config["max-file"])
		}
		if m.podman != nil {
			if c.Log.MaxSize, err = podmanLogSize(m.podman, i.ID); err != nil {
				return nil, err
			}
			c.Log.MaxFiles = 1
		}
		out = append(out, c)
	}
	return out, nil
}

// view includes the container's image.
func (m *dockerMachine) view(_ string, c Container) (View, error) {
	i, err := m.client.ContainerInspect(context.Background(), c.ID)
	if err != nil {
		return View{}, err
	}
	image, err := m.client.ImageInspect(context.Background(), i.Image)
	if err != nil {
		return View{}, err
	}
	env := i.Config.Env
	i.Config.Env = nil
	rest, err := json.Marshal([]any{i, image})
	return View{env, string(rest)}, err
}

func (m *dockerMachine) logs(_ string, c Container) (string, error) {
	r, err := m.client.ContainerLogs(context.Background(), c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return "", err
	}
	defer r.Close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, r)
	if err == io.EOF {
		err = nil
	}
	return out.String(), err
}

func (m *dockerMachine) start(_ string, c Container) error {
	return m.client.ContainerStart(context.Background(), c.ID, container.StartOptions{})
}

func (m *dockerMachine) stop(_ string, c Container) error {
	return m.client.ContainerStop(context.Background(), c.ID, container.StopOptions{Timeout: ptr(1)})
}

func (m *dockerMachine) remove(_ string, c Container) error {
	return m.client.ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true})
}

func (m *dockerMachine) kill(_ string, c Container, signal string) error {
	return m.client.ContainerKill(context.Background(), c.ID, signal)
}

func (m *dockerMachine) freeze(_ string, c Container) error {
	// On a busy machine runc gives up on the freezer of cgroup v1 ("unable to freeze") and
	// thaws what it has frozen: nothing has happened then.
	for tries := 1; ; tries++ {
		err := m.client.ContainerPause(context.Background(), c.ID)
		if err == nil || tries == 5 || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
}

func (m *dockerMachine) thaw(_ string, c Container) error {
	return m.client.ContainerUnpause(context.Background(), c.ID)
}

// exec doesn't go through our programs.
func (m *dockerMachine) exec(ctx context.Context, _ *Scenario, c Container, argv []string, stdout io.Writer) (int, error) {
	return m.execIn(ctx, c.ID, argv, stdout)
}

func (m *dockerMachine) execIn(ctx context.Context, id string, argv []string, stdout io.Writer) (int, error) {
	e, err := m.client.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: argv, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return 0, err
	}
	a, err := m.client.ContainerExecAttach(ctx, e.ID, container.ExecAttachOptions{})
	if err != nil {
		return 0, err
	}
	defer a.Close()
	// A process outlives the client of its exec: it is ended by its ID.
	defer context.AfterFunc(ctx, func() {
		if i, err := m.client.ContainerExecInspect(context.Background(), e.ID); err == nil && i.Running {
			ownengine.Kill(strconv.Itoa(i.Pid))
		}
		a.Close()
	})()
	var errs bytes.Buffer
	if _, err := stdcopy.StdCopy(stdout, &errs, a.Reader); err != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	i, err := m.client.ContainerExecInspect(ctx, e.ID)
	if err != nil {
		return 0, err
	}
	if errs.Len() > 0 {
		return i.ExitCode, fmt.Errorf("%q: %s", argv, errs.String())
	}
	return i.ExitCode, nil
}

func (m *dockerMachine) early(_ *Scenario, c Container, probes []string) ([]probe.Result, error) {
	return m.probeIn(c.ID, compose.InitPath, probes)
}

func (m *dockerMachine) session(s *Scenario, worker string) (io.ReadWriteCloser, error) {
	e, err := docker.New(s.Context(), docker.Options{Lookup: os.LookupEnv, Compared: engine.Compared{Dir: s.records()}})
	if err != nil {
		return nil, err
	}
	s.Cleanup(func() { e.Close() })
	return e.Session(s.Context(), s.Project, worker, "")
}

func (m *dockerMachine) leftovers(s *Scenario) (out []string) {
	ctx := context.Background()
	all, err := m.list(s.Project)
	for _, c := range all {
		out = append(out, "container "+c.Service)
	}
	nets, e := m.client.NetworkList(ctx, network.ListOptions{Filters: ofProject(s.Project)})
	for _, n := range nets {
		out = append(out, "network "+n.Name)
	}
	vols, e2 := m.client.VolumeList(ctx, volume.ListOptions{}) // also such as have no label
	for _, v := range vols.Volumes {
		if strings.HasPrefix(v.Name, s.Project+"_") {
			out = append(out, "volume "+v.Name)
		}
	}
	if err := errors.Join(err, e, e2); err != nil {
		s.Fatal(err)
	}
	return out
}

// clean removes every object of the project by its labels.
func (m *dockerMachine) clean(s *Scenario) {
	ctx := context.Background()
	if all, err := m.client.ContainerList(ctx, container.ListOptions{All: true, Filters: ofProject(s.Project)}); err == nil {
		for _, c := range all {
			_ = m.client.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	if nets, err := m.client.NetworkList(ctx, network.ListOptions{Filters: ofProject(s.Project)}); err == nil {
		for _, n := range nets {
			_ = m.client.NetworkRemove(ctx, n.ID)
		}
	}
	if vols, err := m.client.VolumeList(ctx, volume.ListOptions{Filters: ofProject(s.Project)}); err == nil {
		for _, v := range vols.Volumes {
			_ = m.client.VolumeRemove(ctx, v.Name, true)
		}
	}
	_ = os.RemoveAll(filepath.Join(s.records(), s.Project))
	if m.podman != nil {
		removeRuntime(s, filepath.Join(m.caller.runtime(), "workshop"))
		return
	}
	removeRuntime(s, "/run/workshop", fmt.Sprintf("/dev/shm/workshop-%d", os.Getuid()), fmt.Sprintf("/run/user/%d/workshop", os.Getuid()))
}

// removeRuntime removes runtime directories, which `down` would have removed.
func removeRuntime(s *Scenario, parents ...string) {
	for _, parent := range parents {
		dirs, _ := filepath.Glob(filepath.Join(parent, s.Project+"-*"))
		for _, dir := range dirs {
			_ = os.RemoveAll(dir)
		}
	}
}

func (m *dockerMachine) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ordinary != "" {
		_ = m.client.ContainerRemove(context.Background(), m.ordinary, container.RemoveOptions{Force: true})
	}
	if m.podman != nil {
		if err := m.podman.Remove(); err != nil {
			fmt.Fprintf(os.Stderr, "podman: left behind: %v\n", err)
		}
	}
	if m.own != nil {
		if err := m.own.Remove(); err != nil {
			fmt.Fprintf(os.Stderr, "dockerd: left behind: %v\n", err)
		}
	}
	m.client.Close()
}

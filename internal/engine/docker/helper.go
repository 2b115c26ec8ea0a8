package docker

import (
	"context"
	"crypto/rand"
	"maps"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/llmdo/workshop/internal/engine"
)

// helper is a container of the workshop-init image that is created but never
// started, to access volumes by the archive API.
type helper struct {
	name     string            // "": a random one
	mount    string            // volume, may be empty
	at       string            // where
	readOnly bool              // mounted read-only
	labels   map[string]string // of the project, if any
	volume   map[string]string // labels of the volume, if the project's
}

func (e *Engine) createHelper(ctx context.Context, h helper) (string, error) {
	image, err := e.findInit(ctx)
	if err != nil {
		return "", err
	}
	if h.name == "" {
		h.name = "workshop-helper-" + rand.Text()[:12]
	}
	labels := map[string]string{engine.LabelHelper: "true", engine.LabelOneOff: "True"}
	maps.Copy(labels, h.labels)
	host := &container.HostConfig{NetworkMode: network.NetworkNone, LogConfig: container.LogConfig{Type: "none"}, CapDrop: []string{"ALL"}}
	if h.mount != "" {
		host.Mounts = []mount.Mount{{
			Type: mount.TypeVolume, Source: h.mount, Target: h.at, ReadOnly: h.readOnly,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: h.volume},
		}}
	}
	config := &container.Config{Image: image, Entrypoint: []string{"/workshop-init"}, Labels: labels, NetworkDisabled: true}
	made, err := e.cli.ContainerCreate(ctx, config, host, nil, nil, h.name)
	return made.ID, err
}

// removeHelper removes a helper even if the caller's context is done.
func (e *Engine) removeHelper(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// One that stays is labelled, and removed by the next up or down.
	_ = e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
}

// withHelper removes the helper in the background after success: only the end of
// the run waits for it ([Engine.settle]).
func (e *Engine) withHelper(ctx context.Context, h helper, use func(id string) error) error {
	id, err := e.createHelper(ctx, h)
	if err != nil {
		return err
	}
	if err := use(id); err != nil {
		e.removeHelper(id)
		return err
	}
	e.background.Go(func() { e.removeHelper(id) })
	return nil
}

// settle waits for background work.
func (e *Engine) settle() { e.background.Wait() }

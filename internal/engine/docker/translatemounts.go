package docker

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

func (t translation) mounts(h *container.HostConfig) error {
	for _, line := range t.s.Tmpfs {
		target, options, _ := strings.Cut(line, ":")
		if h.Tmpfs == nil {
			h.Tmpfs = map[string]string{}
		}
		h.Tmpfs[target] = options
	}
	for _, v := range t.s.Volumes {
		m, err := t.mount(v)
		if err != nil {
			return err
		}
		h.Mounts = append(h.Mounts, m)
	}
	for _, s := range t.s.Secrets {
		m, err := t.secret(s)
		if err != nil {
			return err
		}
		h.Mounts = append(h.Mounts, m)
	}
	for _, m := range h.Mounts {
		if err := engine.CheckPath("a mount's target", m.Target); err != nil {
			return err
		}
	}
	return nil
}

func (t translation) mount(v types.ServiceVolumeConfig) (mount.Mount, error) {
	m := mount.Mount{Target: v.Target, ReadOnly: v.ReadOnly}
	switch v.Type {
	case types.VolumeTypeBind:
		return t.bind(m, v)
	case types.VolumeTypeVolume:
		if _, ok := t.c.Project.Volumes[v.Source]; !ok {
			return m, fmt.Errorf("volume %q is not in the project", v.Source)
		}
		m.Type, m.Source = mount.TypeVolume, engine.VolumeName(t.c.Project, v.Source)
		m.VolumeOptions = &mount.VolumeOptions{NoCopy: v.Volume != nil && v.Volume.NoCopy, Labels: mountedLabels(t.c, v.Source)}
	case types.VolumeTypeTmpfs:
		m.Type = mount.TypeTmpfs
		if v.Tmpfs != nil {
			m.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: int64(v.Tmpfs.Size), Mode: os.FileMode(v.Tmpfs.Mode)}
		}
	default:
		return m, fmt.Errorf("unknown volume type %q of %s", v.Type, v.Target)
	}
	return m, nil
}

// mountedLabels returns the labels of a volume that the engine creates implicitly
// with a container: they identify the project and, without the hash, a volume to
// recreate. External volumes get none.
func mountedLabels(c *compose.Compiled, key string) map[string]string {
	if bool(c.Project.Volumes[key].External) {
		return nil
	}
	if _, cache := c.Caches[key]; cache { // nothing recreates one
		return engine.VolumeLabels(c, key)
	}
	labels := engine.ObjectLabels(c)
	labels[engine.LabelVolume] = key
	return labels
}

// bind is never recursive (B7): mounts below a source are not included. A missing
// source is an error of the engine, which must not create it as root.
func (t translation) bind(m mount.Mount, v types.ServiceVolumeConfig) (mount.Mount, error) {
	m.Type, m.Source = mount.TypeBind, engine.HostPath(t.c, v.Source)
	if !filepath.IsAbs(m.Source) {
		return m, fmt.Errorf("the source %q of %s is not absolute, and the project directory is not known", v.Source, v.Target)
	}
	if err := engine.CheckPath("the source of "+v.Target, m.Source); err != nil {
		return m, err
	}
	m.BindOptions = &mount.BindOptions{NonRecursive: true, Propagation: mount.PropagationRPrivate}
	if v.Bind != nil {
		if v.Bind.Propagation != "" {
			m.BindOptions.Propagation = mount.Propagation(v.Bind.Propagation)
		}
		if r := v.Bind.Recursive; r != "" && r != "disabled" {
			return m, fmt.Errorf("bind.recursive %q of %s: binds are never recursive", r, v.Target)
		}
	}
	return m, nil
}

func (t translation) secret(s types.ServiceSecretConfig) (mount.Mount, error) {
	file := t.c.Project.Secrets[s.Source].File
	if t.c.Facts != nil && t.c.Facts.SecretFiles[s.Source] != "" {
		file = t.c.Facts.SecretFiles[s.Source]
	}
	if file == "" {
		return mount.Mount{}, fmt.Errorf("secret %q has no file", s.Source)
	}
	target := s.Target
	if target == "" {
		target = s.Source
	}
	if !path.IsAbs(target) {
		target = path.Join(compose.SecretsDir, target)
	}
	return t.bind(mount.Mount{Target: target, ReadOnly: true}, types.ServiceVolumeConfig{Source: file, Target: target})
}

package namespace

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// programName is workshop-init's name in its directory.
const programName = "workshop-init"

// guardResolv is the directory in which the guard finds its resolv.conf.
const guardResolv = "/run/resolv"

func (t *translation) mounts() error {
	if t.ours && t.role != spec.Worker {
		t.add(spec.Mount{Type: spec.Bind, Source: path.Join(t.m.tools, programName), Target: compose.ImageInit, ReadOnly: true})
	}
	if t.role == spec.Guard {
		// The guard dials the machine's resolvers; the supervisor updates this file.
		t.add(spec.Mount{Type: spec.Bind, Source: t.m.resolv, Target: guardResolv, ReadOnly: true})
	}
	for i := range t.s.Volumes {
		m, err := t.mount(&t.s.Volumes[i])
		if err != nil {
			return err
		}
		t.add(m)
	}
	return nil
}

func (t *translation) add(m spec.Mount) {
	m.Target = path.Clean(m.Target)
	t.out.Mounts = append(t.out.Mounts, m)
}

func (t *translation) mount(v *types.ServiceVolumeConfig) (spec.Mount, error) {
	m := spec.Mount{Type: spec.Bind, Target: v.Target, ReadOnly: v.ReadOnly}
	if !path.IsAbs(v.Target) {
		return m, fmt.Errorf("the target %q is not absolute", v.Target)
	}
	var err error
	switch v.Type {
	case types.VolumeTypeBind:
		err = t.bind(&m, v)
	case types.VolumeTypeVolume:
		err = t.volume(&m, v)
	default:
		err = fmt.Errorf("the namespace engine does not support the volume type %q of %s", v.Type, v.Target)
	}
	return m, err
}

// bind is never recursive (B7): mounts below a source are not included. The only
// exception are parts of the host's programs, because in a user namespace the kernel
// doesn't bind a directory without the mounts in it (mount_namespaces(7)).
func (t *translation) bind(m *spec.Mount, v *types.ServiceVolumeConfig) error {
	source := engine.HostPath(t.c, v.Source)
	if !filepath.IsAbs(source) {
		return fmt.Errorf("the source %q of %s is not absolute, and the project directory is not known", v.Source, v.Target)
	}
	if b := v.Bind; b != nil {
		if b.Propagation != "" && b.Propagation != types.PropagationRPrivate && b.Propagation != types.PropagationPrivate {
			return fmt.Errorf("bind.propagation %q of %s: mounts are always private", b.Propagation, v.Target)
		}
		if b.Recursive != "" && b.Recursive != "disabled" {
			return fmt.Errorf("bind.recursive %q of %s: binds are never recursive", b.Recursive, v.Target)
		}
	}
	m.Recursive = t.ours && t.c.Facts != nil && v.ReadOnly && source == v.Target && slices.Contains(t.c.Facts.HostPaths, source)
	var err error
	if m.Source, err = t.m.real(source); err != nil {
		return fmt.Errorf("the source of %s: %w", v.Target, err)
	}
	return engine.CheckMoved(t.c, v.Target, source, m.Source)
}

// volume translates a volume to a bind of a directory of the project, or for the
// tool volume of workshop-init's directory.
func (t *translation) volume(m *spec.Mount, v *types.ServiceVolumeConfig) error {
	config, ok := t.c.Project.Volumes[v.Source]
	if !ok {
		return fmt.Errorf("volume %q is not in the project", v.Source)
	}
	if err := checkKnown("volume "+v.Source, config); err != nil {
		return err
	}
	// What an outlet has is empty in its image, and belongs to its user on every engine.
	if t.role != spec.Outlet && (v.Volume == nil || !v.Volume.NoCopy) {
		return fmt.Errorf("volume %q at %s: volumes are never filled from the image", v.Source, v.Target)
	}
	name := engine.VolumeName(t.c.Project, v.Source)
	switch {
	case v.Source == compose.ToolsVolume:
		if !v.ReadOnly {
			return fmt.Errorf("the tool volume at %s is writable", v.Target)
		}
		m.Source = t.m.tools
	case bool(config.External):
		return fmt.Errorf("volume %q is external, and the namespace engine supports only volumes of the project", name)
	case !validName(name):
		return fmt.Errorf("volume %q: the name is not valid as a directory name", name)
	default:
		m.Source = path.Join(t.m.volumes, name)
		if _, cache := t.c.Caches[v.Source]; cache {
			m.Source = path.Join(t.m.caches, name, cacheData)
		}
	}
	return nil
}

// cacheData is the directory with the content of a cache, in that of the cache.
const cacheData = "data"

// validName reports whether a volume's name is a single path element.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}

// imageVolumeSize is the size of the tmpfs over a volume that an image declares, as
// in the docker engine.
const imageVolumeSize = 64 << 20

// coverVolumes mounts a small tmpfs over each volume that the image declares
// and the workshop doesn't mount: its programs expect to write there.
func (t *translation) coverVolumes() error {
	volumes := slices.Clone(t.image.volumes)
	slices.Sort(volumes)
	for _, dir := range slices.Compact(volumes) {
		dir = path.Clean("/" + dir)
		if dir == "/" || inOwn(dir) || slices.ContainsFunc(t.out.Mounts, func(m spec.Mount) bool { return m.Target == dir }) {
			continue
		}
		t.add(spec.Mount{Type: spec.Tmpfs, Target: dir, Size: imageVolumeSize, Mode: 0o1777})
	}
	return nil
}

// inOwn reports whether a path is in a file system that every container gets.
func inOwn(p string) bool {
	return subpath.Within(p, "/proc") || subpath.Within(p, "/sys") || subpath.Within(p, "/dev")
}

// sortMounts sorts the mounts as Docker does: a mount inside another comes after it.
func (t *translation) sortMounts() error {
	sortfunc.Stable(t.out.Mounts, func(a, b spec.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Target, "/"), strings.Count(b.Target, "/")), strings.Compare(a.Target, b.Target))
	})
	for i, m := range t.out.Mounts {
		if err := cmp.Or(engine.CheckPath("the source of "+m.Target, m.Source), engine.CheckPath("a mount's target", m.Target)); err != nil {
			return err
		}
		switch {
		case m.Target == "/" || inOwn(m.Target):
			return fmt.Errorf("nothing can be mounted at %s", m.Target)
		case i > 0 && m.Target == t.out.Mounts[i-1].Target:
			return fmt.Errorf("two mounts at %s", m.Target)
		}
	}
	return nil
}

package compose

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"
)

// mounts checks B3, B6, B7, B9 and B11 of everything that is mounted.
func (k *checker) mounts(s *types.ServiceConfig) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		k.must(path.IsAbs(v.Target) && path.Clean(v.Target) == v.Target && v.Target != "/", "B3", "the mount target %q is not a clean absolute path", v.Target)
		switch v.Type {
		case types.VolumeTypeBind:
			k.bind(v)
		case types.VolumeTypeVolume:
			k.volume(v)
		default:
			k.add("B3", "%s is mounted as %q", v.Target, v.Type)
		}
		k.must(v.Tmpfs == nil && v.Image == nil && v.Consistency == "" && len(v.Extensions) == 0, "B3", "the mount at %s has options that are not compiled", v.Target)
		for j := range s.Volumes[:i] {
			k.must(s.Volumes[j].Target != v.Target, "B3", "two mounts at %s", v.Target)
		}
	}
}

func (k *checker) volume(v *types.ServiceVolumeConfig) {
	_, declared := k.c.Project.Volumes[v.Source]
	k.must(declared, "B9", "the volume %q at %s is not the project's", v.Source, v.Target)
	if k.c.Roles[k.service] == RoleOutlet && v.Target == OutletDir { // its image, which is ours, has an empty one
		k.must(v.Bind == nil && (v.Volume == nil || v.Volume.Subpath == ""), "B9", "the volume at %s is not the outlet's own", v.Target)
		return
	}
	k.must(v.Bind == nil && v.Volume != nil && v.Volume.NoCopy && v.Volume.Subpath == "", "B9", "the volume at %s would be filled from the image", v.Target)
}

func (k *checker) bind(v *types.ServiceVolumeConfig) {
	b := v.Bind
	k.must(v.Volume == nil && b != nil && b.Recursive == "disabled" && !bool(b.CreateHostPath) && b.Propagation == "" && b.SELinux == "",
		"B7", "the bind at %s is recursive, propagates or creates its source", v.Target)
	k.must(utf8.ValidString(v.Source) && utf8.ValidString(v.Target), "B7", "the path %q or %q is not UTF-8", v.Source, v.Target)
	k.must(!strings.HasSuffix(v.Source, ".sock"), "B6", "%s looks like an engine's socket", v.Source)
	if k.own(v) {
		k.must(v.ReadOnly, "B3", "%s is writable", v.Target)
		return
	}
	f := k.c.Facts
	if f == nil {
		f = &Facts{} // what can be said without the machine
		if !path.IsAbs(v.Source) {
			return
		}
	} else {
		k.must(f.Local, "B7", "%s can't be bound: the engine is elsewhere", v.Source)
	}
	k.must(path.IsAbs(v.Source) && path.Clean(v.Source) == v.Source, "B7", "the source %q is not resolved", v.Source)
	if why := f.Refusal(v.Source); why != "" {
		k.add("B7", "%s is mounted: it %s", v.Source, why)
	}
}

// own reports whether a bind is one that the compile makes itself, by what the
// facts say: host programs, names of the user, secrets, the worker's own door.
func (k *checker) own(v *types.ServiceVolumeConfig) bool {
	f := k.c.Facts
	if f == nil {
		return k.c.Roles[k.service] == RoleGuard && v.Source == "./guard" && v.Target == PolicyDir
	}
	switch {
	case v.Target == "/etc/passwd" || v.Target == "/etc/group":
		return f.RuntimeDir != "" && path.Dir(v.Source) == path.Clean(f.RuntimeDir)
	case v.Target == DialInDir && k.c.Roles[k.service] == RoleWorker:
		return f.Local && f.RuntimeDir != "" && v.Source == path.Clean(f.RuntimeDir)+"/door-"+k.service
	case path.Base(v.Target) == backFile:
		return f.RuntimeDir != "" && path.Dir(v.Source) == path.Clean(f.RuntimeDir) && strings.HasPrefix(path.Base(v.Source), backFile+"-")
	case path.Dir(v.Target) == SecretsDir:
		for _, file := range f.SecretFiles {
			if v.Source == file {
				return true
			}
		}
	}
	for _, p := range f.HostPaths {
		if v.Source == p && v.Target == p {
			return true
		}
	}
	return false
}

// protected checks B8: what was found below an rw bind is held by a mount that
// is read-only, or is a pinned .git or a pinned directory on the way.
func (k *checker) protected(s *types.ServiceConfig) {
	f := k.c.Facts
	if f == nil {
		return
	}
	at := map[string]*types.ServiceVolumeConfig{}
	for i := range s.Volumes {
		at[s.Volumes[i].Target] = &s.Volumes[i]
	}
	k.repositories(s, at)
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.Type != types.VolumeTypeBind || v.ReadOnly {
			continue
		}
		if dir := f.protectedOn(v.Source); dir != "" && dir != ".git" {
			k.add("B8", "%s is writable and in %s", v.Source, dir)
		}
		for written, found := range f.Protected {
			if f.Sources[written].Real != v.Source {
				continue
			}
			for _, p := range found {
				k.held(at, v, p)
			}
		}
		for _, p := range f.sourcesBelow(v.Source) {
			k.pinned(at, v, p)
		}
	}
}

// declares reports whether a mount inside v is one of the file's own: a mount
// point that covers what is below it.
func (k *checker) declares(m, v *types.ServiceVolumeConfig) bool {
	w := k.c.definition(k.service)
	if m == nil || m == v || w == nil {
		return false
	}
	for i := range w.Container.Mounts {
		if w.Container.Mounts[i].Target.V == m.Target {
			return true
		}
	}
	return false
}

// pinned demands that a source of another mount can't be replaced: a worker
// that puts a symlink there would choose what is mounted (B7).
func (k *checker) pinned(at map[string]*types.ServiceVolumeConfig, v *types.ServiceVolumeConfig, p string) {
	if loose, _ := k.descend(at, v, p); loose != nil {
		k.add("B7", "%s below the rw mount at %s is mounted elsewhere and not pinned: %s can be replaced by a link", p, v.Target, *loose)
	}
}

// held demands that a protected path is read-only and can't be moved away (B8).
func (k *checker) held(at map[string]*types.ServiceVolumeConfig, v *types.ServiceVolumeConfig, p Protected) {
	loose, writable := k.descend(at, v, p.Path)
	if loose != nil {
		k.add("B8", "%s below the rw mount at %s is not held: %s can be moved away", p.Path, v.Target, *loose)
	}
	k.must(!writable || p.Kind == GitDir && k.gitWritable(v), "B8", "%s is writable below the mount at %s", p.Path, v.Target)
}

// gitWritable reports whether the file says `git: rw` of a mount.
func (k *checker) gitWritable(v *types.ServiceVolumeConfig) bool {
	w := k.c.definition(k.service)
	if w == nil {
		return false
	}
	for i := range w.Container.Mounts {
		if m := &w.Container.Mounts[i]; m.Target.V == v.Target {
			return m.GitWritable
		}
	}
	return false
}

// descend walks from the mount down to p: every directory on the way must be a
// mount of itself (its name can't be moved away then), until one is read-only
// as a whole or declared by the user. loose is the first that isn't; writable
// reports whether all are mounts and none is read-only.
func (k *checker) descend(at map[string]*types.ServiceVolumeConfig, v *types.ServiceVolumeConfig, p string) (loose *string, writable bool) {
	for end := 0; end <= len(p); end++ {
		if end < len(p) && p[end] != '/' {
			continue
		}
		part := p[:end]
		m := at[path.Join(v.Target, part)]
		switch {
		case k.declares(m, v):
			return nil, false
		case m == nil || m.Source != path.Join(v.Source, part):
			return &part, false
		case m.ReadOnly:
			return nil, false
		}
	}
	return nil, true
}

package compose

import (
	"path"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// worker checks what holds for workers alone.
func (k *checker) worker(s *types.ServiceConfig) {
	k.must(len(s.CapAdd) == 0, "B1", "capabilities are added: %q", s.CapAdd)
	k.workerUser(s)
	k.must(s.ShmSize > 0, "B5", "/dev/shm is not limited")
	k.must(len(s.Ulimits) == len(workerUlimits), "B60", "it has other ulimits than a worker's")
	for _, name := range sortedKeys(workerUlimits) {
		u, n := s.Ulimits[name], workerUlimits[name]
		k.must(u != nil && u.Single == 0 && u.Soft == n && u.Hard == n, "B60", "the ulimit %s is not %d", name, n)
	}
	k.must(s.Image != "", "B12", "it has no image")
	k.entrypoint(s, InitPath, "gate")
	k.tools(s)
	k.kernel(s)

	k.must(len(s.Networks) == 0 && len(s.Ports) == 0 && len(s.Expose) == 0, "B6", "a worker has no network and no port of its own")
	k.must(len(s.Sysctls) == 0, "B6", "it sets kernel parameters")
	room := k.c.RoomOf[s.Name]
	if room == "" {
		k.must(s.NetworkMode == "none", "B6", "the network mode is %q without a room", s.NetworkMode)
	} else {
		k.must(k.c.Roles[room] == RoleRoom && s.NetworkMode == "service:"+room, "B6", "the network mode is %q, its room is %q", s.NetworkMode, room)
	}
	k.workerMounts(s)
	k.protected(s)
}

// workerUser checks B4. Before the facts are known a worker may have no user:
// the machine decides.
func (k *checker) workerUser(s *types.ServiceConfig) {
	if s.User == "" && k.c.Facts == nil {
		return
	}
	uid, gid, ok := ids(s.User)
	k.must(ok && uid > 0 && gid > 0, "B4", "the user is %q, not a uid:gid without root", s.User)
	k.must(!workshop.ReservedID(uid) && !workshop.ReservedID(gid), "B60", "the user %q is the guard's or the outlet's", s.User)
}

// workerMounts checks that only what the file declares is writable, that the
// gate can't be covered, and that the volumes of rooms and guard stay away.
func (k *checker) workerMounts(s *types.ServiceConfig) {
	tools := false
	w := k.c.definition(s.Name)
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.Target == InitDir && v.Type == types.VolumeTypeVolume && isTools(v.Source) {
			k.must((v.Source == ReadableToolsVolume) == k.onGVisor(w), "B12", "workshop-init is mounted as %q, which is not for its kernel", v.Source)
			tools = v.ReadOnly
			continue
		}
		if v.Type == types.VolumeTypeVolume && v.Target == OutletDir {
			k.must(v.ReadOnly && (w == nil || w.Container.Kernel.V.Own()) && k.c.Roles[v.Source] == RoleOutlet && k.c.RoomOf[v.Source] == k.c.RoomOf[s.Name],
				"B13", "the volume at %s is not that of its own outlet, read-only", v.Target)
			continue
		}
		k.must(!subpath.Within(v.Target, InitDir), "B12", "the mount at %s covers the gate", v.Target)
		k.must(!subpath.Within(v.Target, DialInDir) || k.own(v), "B12", "the mount at %s is not the worker's door", v.Target)
		if v.Type == types.VolumeTypeVolume {
			if _, cached := k.c.Caches[v.Source]; cached && !v.ReadOnly {
				k.cache(s, v)
				continue
			}
			_, copied := k.c.Copies[v.Source]
			k.must(copied && v.ReadOnly, "B9", "the volume %q at %s is not a read-only copy", v.Source, v.Target)
			continue
		}
		if path.Dir(v.Target) == SecretsDir {
			k.must(declaresSecret(w, path.Base(v.Target)), "B11", "the secret %s is not the worker's", path.Base(v.Target))
		}
		k.must(v.ReadOnly || w == nil || declaresWritable(w, v.Target) || k.repository(v) != nil, "B3", "%s is writable and not declared so", v.Target)
	}
	k.must(tools, "B12", "the tool volume is not mounted read-only at %s", InitDir)
	for _, t := range s.Tmpfs {
		dir, _, _ := strings.Cut(t, ":")
		k.must(!subpath.Within(path.Clean(dir), InitDir) && !subpath.Within(InitDir, path.Clean(dir)), "B12", "the tmpfs at %s covers the gate", dir)
		k.must(!subpath.Within(path.Clean(dir), DialInDir) && !subpath.Within(DialInDir, path.Clean(dir)), "B12", "the tmpfs at %s covers the door", dir)
	}
}

func declaresWritable(w *workshop.Worker, target string) bool {
	for i := range w.Container.Mounts {
		m := &w.Container.Mounts[i]
		if m.ReadWrite && !m.IsCopy() && subpath.Within(target, m.Target.V) {
			return true
		}
	}
	return false
}

func declaresSecret(w *workshop.Worker, name string) bool {
	if w == nil {
		return true
	}
	for i := range w.Container.Secrets {
		if w.Container.Secrets[i].Name == name {
			return true
		}
	}
	return false
}

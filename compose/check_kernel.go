package compose

import (
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// outlet checks that an outlet is in its worker's room, and has neither a capability nor
// anything but the volume of the two.
func (k *checker) outlet(s *types.ServiceConfig) {
	k.must(len(s.CapAdd) == 0, "B1", "the outlet has capabilities: %q", s.CapAdd)
	k.must(s.User == "65531:65531", "B4", "the user is %q", s.User)
	k.ownKernel(s)
	k.initImage(s)
	k.entrypoint(s, ImageInit, "outlet")
	room := k.c.RoomOf[s.Name]
	k.must(k.c.Roles[room] == RoleRoom && s.NetworkMode == "service:"+room, "B6", "the network mode is %q, its room is %q", s.NetworkMode, room)
	k.must(len(s.Networks) == 0 && len(s.Ports) == 0 && len(s.Expose) == 0 && len(s.Sysctls) == 0, "B6", "an outlet has no network of its own")
	k.must(len(s.Volumes) == 1 && s.Volumes[0].Type == types.VolumeTypeVolume && s.Volumes[0].Source == s.Name && s.Volumes[0].Target == OutletDir,
		"B3", "an outlet mounts the volume of its worker and nothing else")
	k.must(len(s.Tmpfs) == 0 && len(s.Environment) == 0, "B3", "an outlet has no tmpfs and no environment")
	workers := 0
	for name, of := range k.c.RoomOf {
		if of != room || k.c.Roles[name] != RoleWorker {
			continue
		}
		workers++
		w := k.c.definition(name)
		k.must(w == nil || w.Container.Kernel.V.Own(), "B13", "the worker %s of its room has this machine's kernel", name)
	}
	k.must(workers == 1, "B13", "its room has %d workers", workers)
}

// kernel checks that a worker whose kernel isn't this machine's has an outlet, and a runtime
// that gives it one, no door and no program that it must not read, or is a virtual machine;
// and that others have none of that (B13).
func (k *checker) kernel(s *types.ServiceConfig) {
	w := k.c.definition(s.Name)
	own := w != nil && w.Container.Kernel.V.Own()
	k.must(own || s.Labels[LabelMachine] == "", "B13", "it says that it is a virtual machine")
	at := slices.Index(s.Entrypoint, "--relay")
	relayed := at > 0 && at+1 < len(s.Entrypoint) && s.Entrypoint[at+1] == OutletSocket
	k.must(relayed == (own && k.c.RoomOf[s.Name] != ""), "B13", "its main process is to relay: %v", relayed)
	if !own || k.c.Facts == nil {
		return
	}
	is := k.c.Facts.Kernels[w.Container.Kernel.V]
	door := slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == DialInDir })
	if is.Mechanism == MechanismVM {
		label := s.Labels[LabelMachine]
		k.must(s.Runtime == "" && is.VM != nil && (strings.HasPrefix(label, "kvm ") != is.VM.Emulated) &&
			strings.Contains(label, path.Base(is.VM.Kit)) && strings.Contains(label, is.VM.QEMUSHA256) && strings.Contains(label, is.VM.ProgramSHA256),
			"B13", "it is made as %q, its virtual machine is another", label)
		return
	}
	k.must(k.onGVisor(w) && s.Runtime == is.Runtime, "B13", "its runtime is %q, that of kernel %s is %q", s.Runtime, w.Container.Kernel.V, is.Runtime)
	k.must(!door, "B13", "it has a door, which another kernel can't open")
}

// onGVisor reports whether a worker has a kernel of gVisor on this machine.
func (k *checker) onGVisor(w *workshop.Worker) bool {
	return w != nil && w.Container.Kernel.V.Own() && k.c.Facts != nil && k.c.Facts.Kernels[w.Container.Kernel.V].Mechanism == MechanismGVisor
}

func isTools(volume string) bool { return volume == ToolsVolume || volume == ReadableToolsVolume }

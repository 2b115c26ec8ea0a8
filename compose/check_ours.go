package compose

import (
	"net/netip"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
)

// room checks the exceptions that a room has, and that it has no others: root
// with exactly two capabilities, no network, no mount but its sockets.
func (k *checker) room(s *types.ServiceConfig) {
	k.must(sameSet(s.CapAdd, "NET_ADMIN", "NET_BIND_SERVICE"), "B1", "a room's capabilities are %q", s.CapAdd)
	k.must(s.User == "0:0", "B4", "the user is %q", s.User)
	k.ownKernel(s)
	k.initImage(s)
	k.entrypoint(s, ImageInit, "room")
	k.must(s.NetworkMode == "none" && len(s.Networks) == 0 && len(s.Ports) == 0 && len(s.Expose) == 0, "B6", "a room has no network")
	for _, key := range sortedKeys(s.Sysctls) {
		want, ok := allowedSysctls[key]
		k.must(ok && s.Sysctls[key] == want, "B6", "it sets the kernel parameter %s", key)
	}
	k.must(len(s.Volumes) == 1 && isSockets(&s.Volumes[0]), "B3", "a room mounts its sockets and nothing else")
	k.must(len(s.Tmpfs) == 0 && len(s.Environment) == 0, "B3", "a room has no tmpfs and no environment")
	_, ruled := k.c.Rulesets[s.Name]
	k.must(ruled, "B6", "the room has no ruleset")
	found := false
	if k.c.Policy != nil {
		for i := range k.c.Policy.Rooms {
			found = found || k.c.Policy.Rooms[i].Room == s.Name
		}
	}
	k.must(found, "B6", "the guard has no policy for the room")
}

// guard checks that the guard has no capability, no workspace and no secret.
func (k *checker) guard(s *types.ServiceConfig) {
	k.must(len(s.CapAdd) == 0, "B1", "the guard has capabilities: %q", s.CapAdd)
	k.must(s.User == "65532:65532", "B4", "the user is %q", s.User)
	k.ownKernel(s)
	k.initImage(s)
	k.entrypoint(s, ImageInit, "guard")
	_, own := s.Networks[defaultNetwork]
	k.must(s.NetworkMode == "" && len(s.Networks) == 1 && own, "B6", "the guard has other networks than its own bridge")
	k.must(len(s.Sysctls) == 0, "B6", "it sets kernel parameters")
	sockets, policy := false, false
	for i := range s.Volumes {
		v := &s.Volumes[i]
		switch {
		case isSockets(v):
			sockets = true
		case v.Target == PolicyDir && v.ReadOnly && (v.Source == "./guard" || (v.Type == types.VolumeTypeVolume && v.Source == PolicyVolume)):
			policy = true
		default:
			k.add("B3", "the guard mounts %s at %s", v.Source, v.Target)
		}
	}
	k.must(sockets && policy, "B6", "the guard lacks its sockets or its policy")
	k.guardPorts(s)
}

// ownKernel checks that a room or guard has the machine's kernel, whatever the engine's
// default runtime is.
func (k *checker) ownKernel(s *types.ServiceConfig) {
	ok := KernelRuntime(s.Runtime)
	if f := k.c.Facts; ok && s.Runtime == "" && f != nil {
		ok = KernelRuntime(f.DefaultRuntime)
	}
	k.must(ok, "B30", "the runtime %q is not known to have the machine's kernel", s.Runtime)
}

func isSockets(v *types.ServiceVolumeConfig) bool {
	return v.Type == types.VolumeTypeVolume && v.Source == SocketsVolume && v.Target == SocketDir
}

// guardPorts checks B10: published ports are those of the policy, and a
// wildcard address only where the file says expose_beyond_host.
func (k *checker) guardPorts(s *types.ServiceConfig) {
	listens := map[uint32]firewall.Publish{}
	if k.c.Policy != nil {
		for _, p := range k.c.Policy.Publish {
			listens[uint32(p.Listen)] = p
		}
	}
	for _, p := range s.Ports {
		published, known := listens[p.Target]
		k.must(known, "B10", "port %d is not one of the policy", p.Target)
		addr, err := netip.ParseAddr(p.HostIP)
		if err != nil {
			k.add("B10", "port %s is published on %q, not an address", p.Published, p.HostIP)
			continue
		}
		if addr.Unmap().IsUnspecified() && !k.exposes(published, p.Published) {
			k.add("B10", "port %s is published on every address without expose_beyond_host", p.Published)
		}
	}
}

func (k *checker) exposes(p firewall.Publish, published string) bool {
	w := k.c.definition(p.Worker)
	if w == nil {
		return false
	}
	for i := range w.Container.Ports {
		port := &w.Container.Ports[i]
		is := numberText(k.c.Published(PortKey{p.Worker, p.Target}))
		if port.ExposeBeyondHost && port.Target.V == p.Target && is == published {
			return true
		}
	}
	return false
}

package compose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/workshop"
)

// sharedStack are the OCI runtimes that use the kernel's network stack, in
// which a room's rules work. Others, such as gVisor and VM runtimes, bring
// their own and are refused with a room until each was tested (B30).
var sharedStack = []string{"", "runc", "crun", "youki", "io.containerd.runc.v2"}

// runtime refuses what no room holds and what the engine would refuse only
// when room and guard run already. Names of shims (io.containerd.…) are found
// without being registered.
func (m *machine) runtime(k *workshop.Container, room string) {
	if r := k.Runtime; room != "" && !slices.Contains(sharedStack, r.V) {
		m.list.add("runtime-network", r.Source.Range, fmt.Sprintf("runtime %s is not known to work with a room (B30)", r.V),
			"It may bring a network stack of its own, which a room's rules do not reach.", "use `runtime: runc` or `network: none`")
	} else if r.V != "" && len(m.f.Runtimes) > 0 && !slices.Contains(m.f.Runtimes, r.V) && !strings.HasPrefix(r.V, "io.containerd.") {
		m.list.add("runtime-missing", r.Source.Range, fmt.Sprintf("the engine has no runtime %s", r.V),
			"It has "+strings.Join(m.f.Runtimes, ", ")+".", "add it to the engine's configuration (`runtimes` of daemon.json), or remove the line")
	}
}

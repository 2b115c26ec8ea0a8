package compose

import (
	"fmt"
	"slices"

	"github.com/llmdo/workshop/workshop"
)

// sharedStack are the OCI runtimes that use the kernel's network stack, in
// which a room's rules work. Others, such as gVisor and VM runtimes, bring
// their own and are refused with a room until each was tested (B30).
var sharedStack = []string{"", "runc", "crun", "youki", "io.containerd.runc.v2"}

func (m *machine) runtime(k *workshop.Container, room string) {
	if r := k.Runtime; room != "" && !slices.Contains(sharedStack, r.V) {
		m.list.add("runtime-network", r.Source.Range, fmt.Sprintf("runtime %s is not known to work with a room (B30)", r.V),
			"It may bring a network stack of its own, which a room's rules do not reach.", "use `runtime: runc` or `network: none`")
	}
}

package cli

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// kernelRuntimes share the host's kernel and its network namespaces, so that
// a room is a room for them too. What brings a network stack of its own is
// refused until it was tested (B30).
var kernelRuntimes = []string{"", "runc", "crun", "youki", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"}

// refuse says by the promise's number what an engine can't keep. It runs
// before anything is started.
func refuse(c *compiled, info engine.Info) error {
	var broken []string
	for _, held := range capabilityList(info) {
		if held.Promise != "" && !held.Held {
			broken = append(broken, held.Promise+": "+held.Name+": can't be enforced there: "+held.Meaning)
		}
	}
	for i := range c.w.Workers {
		w := &c.w.Workers[i]
		// One that the file names is judged, with its place, by compose.WithFacts.
		if reaches(w) && w.Container.Runtime.V == "" && !slices.Contains(kernelRuntimes, info.DefaultRuntime) {
			broken = append(broken, "B30: "+w.Name+": the engine's default runtime "+info.DefaultRuntime+" is not known to work with a room")
		}
	}
	if len(broken) > 0 {
		return fail(codeRefused, "the engine at %s can't keep what the workshop promises:\n%s", info.Endpoint, strings.Join(broken, "\n")).
			hint("nothing was started; `workshop capabilities` shows what the engine is")
	}
	if c.w.Isolation.V == workshop.IsolationNamespace {
		return fail(codeRefused, "isolation: namespace is not in this version").hint("write `isolation: docker`")
	}
	return nil
}

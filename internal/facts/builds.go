package facts

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/hostlink"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// builds checks the context and the Dockerfile of every built image.
func (c *collector) builds() {
	seen := map[diag.Range]bool{} // workers share the workshop's builds
	for i := range c.o.Workshop.Workers {
		b := c.o.Workshop.Workers[i].Container.Build
		if b == nil || seen[b.Context.Source.Range] {
			continue
		}
		seen[b.Context.Source.Range] = true
		dir := c.abs(b.Context.V)
		real, err := hostlink.Follow(dir, nil)
		if err != nil {
			c.problem("build-context-refused", b.Context.Source.Range, fmt.Sprintf("the build context %s can't be resolved: %v", b.Context.V, err),
				"use a directory of the project")
			continue
		}
		if why := c.refused(dir, real); why != "" {
			c.problem("build-context-refused", b.Context.Source.Range, fmt.Sprintf("the build context %s %s, which a worker never gets (B7)", b.Context.V, why),
				"use a directory of the project")
			continue
		}
		if !subpath.Within(real, c.facts.ProjectDir) {
			c.problem("build-context-refused", b.Context.Source.Range, fmt.Sprintf("the build context %s leads out of the project, to %s", b.Context.V, real),
				"use a directory of the project")
			continue
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			c.problem("build-context-missing", b.Context.Source.Range, fmt.Sprintf("the build context %s is not a directory", b.Context.V),
				"create it, with a Dockerfile: "+dir)
			continue
		}
		file, at := b.Dockerfile.V, b.Dockerfile.Source.Range
		if file == "" {
			file = "Dockerfile"
		}
		if at.Start.Line == 0 {
			at = b.Context.Source.Range
		}
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || !info.Mode().IsRegular() {
			c.problem("build-file-missing", at, fmt.Sprintf("there is no %s in the build context %s", file, b.Context.V),
				"create "+filepath.Join(dir, file)+", or name another with dockerfile:")
		}
	}
}

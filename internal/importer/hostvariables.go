package importer

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/draft"
)

// hostVariable is a variable in a value of ours, or a $ that is meant as it is.
var hostVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)`) })

// HostVariables are the names of the caller's variables whose values the workers get, in
// variables, secrets and arguments of a build.
func (in *Imported) HostVariables() []string {
	names := map[string]bool{}
	container := func(c *draft.Container) {
		values := c.Env
		if c.Build != nil {
			values = slices.Concat(values, c.Build.Args)
		}
		for _, v := range values {
			for _, m := range hostVariable().FindAllStringSubmatch(v.Value, -1) {
				names[m[1]] = true
			}
		}
		for _, l := range c.Secrets {
			if _, name, ok := strings.Cut(l.Text, ", env: "); ok {
				names[strings.Trim(name, `"}`)] = true
			}
		}
	}
	container(&in.Container)
	for i := range in.Workers {
		if c := in.Workers[i].Container; c != nil {
			container(c)
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

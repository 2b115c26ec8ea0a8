package diff

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// grants is what a worker gets, in short: a row about one that is new.
func grants(k *workshop.Worker) string {
	c := &k.Container
	parts := []string{"network " + c.Network.Mode.V.String()}
	if n := len(c.Network.Allow); n > 0 && c.Network.Mode.V != firewall.None {
		parts[0] += fmt.Sprintf(" with %s", count(n, "line"))
	}
	writable := 0
	for i := range c.Mounts {
		if c.Mounts[i].ReadWrite {
			writable++
		}
	}
	if n := len(c.Mounts); n > 0 {
		parts = append(parts, fmt.Sprintf("%s, %d of them writable", count(n, "mount"), writable))
	}
	if n := len(c.Secrets); n > 0 {
		parts = append(parts, count(n, "secret"))
	}
	var tools []string
	for _, t := range k.Definition.Tools {
		tools = append(tools, t.Written)
	}
	if len(tools) > 0 {
		parts = append(parts, "tools "+strings.Join(tools, " "))
	}
	return strings.Join(parts, "; ")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

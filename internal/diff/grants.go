package diff

import (
	"strings"

	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/workshop"
)

// grants is what a worker gets, in short: a row about one that is new.
func grants(k *workshop.Worker) string {
	c := &k.Container
	parts := []string{grant.MountsText(c.Mounts, grant.Symbols), grant.NetworkText(&c.Network, grant.Symbols)}
	if len(c.Secrets) > 0 {
		parts = append(parts, grant.SecretsText(c.Secrets))
	}
	if len(c.Caches) > 0 {
		parts = append(parts, grant.CachesText(c.Caches))
	}
	var tools []string
	for _, t := range k.Definition.Tools {
		tools = appendNew(tools, grant.ToolText(t))
	}
	if len(tools) > 0 {
		parts = append(parts, "tools "+strings.Join(tools, ", "))
	}
	return strings.Join(parts, "; ")
}

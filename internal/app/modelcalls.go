package app

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/broker"
)

// warnModelCalls says of all lines that let calls of models out with a credential that they
// are in nobody's budget (B44): the guard counts bytes and sees no price.
func (env *Env) warnModelCalls(lines []broker.Line) {
	var hosts, credentials []string
	for _, l := range lines {
		if !presets.OfModels(l.At, l.Host) {
			continue
		}
		hosts = appendNew(hosts, l.Host)
		credentials = appendNew(credentials, l.Credential)
	}
	if len(hosts) == 0 {
		return
	}
	slices.Sort(hosts)
	slices.Sort(credentials)
	env.warn("workers may call models at %s with your credentials (%s), and no budget of a run bounds what that costs (B44): set a limit for the key at its provider",
		strings.Join(hosts, ", "), strings.Join(credentials, ", "))
}

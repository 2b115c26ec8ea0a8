package app

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// refuse says by the promise's number what an engine can't keep. It runs
// before anything is started.
func refuse(c *Project, info engine.Info) error {
	var broken, do []string
	var last Capability // several for one reason are one line
	for _, k := range capabilities(info) {
		if k.Promise == "" || k.Held || k.rooms && !slices.ContainsFunc(c.Workshop.Workers, func(w workshop.Worker) bool { return HasNetwork(&w) }) {
			continue
		}
		if info.Unlimited && k.Promise == "B5" {
			continue // chosen with --without-limits
		}
		if last.Promise == k.Promise && last.Meaning == k.Meaning {
			broken, k.Name = broken[:len(broken)-1], last.Name+", "+k.Name
		}
		broken, last = append(broken, k.Promise+": "+k.Name+": can't be enforced there: "+k.Meaning), k
		if k.Do != "" && !slices.Contains(do, k.Do) {
			do = append(do, k.Do)
		}
	}
	if len(broken) > 0 {
		f := Fail(CodeRefused, "the %s can't keep what the workshop promises:\n%s", engineAt(info), strings.Join(broken, "\n"))
		for _, d := range do {
			f.Hint("%s", d)
		}
		return f.Hint("nothing was started; `workshop capabilities` shows what holds on this machine")
	}
	return nil
}

// engineAt is "engine at unix:///var/run/docker.sock", "namespace engine".
func engineAt(i engine.Info) string {
	if i.Endpoint != "" {
		return "engine at " + i.Endpoint
	}
	return i.Kind + " engine"
}

// HasNetwork tells whether a worker has one.
func HasNetwork(w *workshop.Worker) bool { return w.Container.Network.Mode.V != firewall.None }

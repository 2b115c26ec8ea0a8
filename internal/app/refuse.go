package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/workshop"
)

// refuse says what an engine can't enforce, a line per promise. It runs before
// anything is started. What is long to say is left to `doctor`.
func refuse(c *Project, info engine.Info) error {
	type lack struct {
		promise, why string
		names        []string
	}
	var lacks []*lack
	var do []string
	for _, k := range capabilities(info) {
		if k.Promise == "" || k.Held || k.rooms && !slices.ContainsFunc(c.Workshop.Workers, func(w workshop.Worker) bool { return HasNetwork(&w) }) {
			continue
		}
		if k.accepted || info.Unlimited && k.Promise == "B5" {
			continue // by the settings, or --without-limits
		}
		at := slices.IndexFunc(lacks, func(l *lack) bool { return l.promise == k.Promise })
		if at < 0 {
			at, lacks = len(lacks), append(lacks, &lack{promise: k.Promise, why: k.Meaning})
		}
		lacks[at].names = append(lacks[at].names, k.Name)
		if k.Do != "" && !slices.Contains(do, k.Do) {
			do = append(do, k.Do)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	lines := make([]string, len(lacks))
	for i, l := range lacks {
		lines[i] = fmt.Sprintf("%s: %s (%s)", strings.Join(l.names, ", "), l.why, l.promise)
	}
	f := Fail(CodeRefused, "nothing was started: the %s can't enforce here what the workshop needs:\n%s", engineAt(info), strings.Join(lines, "\n"))
	if len(do) == 1 {
		if first, _, _ := strings.Cut(do[0], ". "); len(first) <= maxRefusedHint {
			return f.Hint("%s", first)
		}
	}
	return f.Hint("see why, and the command that helps: `workshop doctor --engine %s`", info.Kind)
}

// maxRefusedHint is how long a remedy may be to stand in a refusal, in bytes.
const maxRefusedHint = 220

// engineAt is "engine at unix:///var/run/docker.sock", "namespace engine".
func engineAt(i engine.Info) string {
	if i.Endpoint != "" {
		return "engine at " + i.Endpoint
	}
	return i.Kind + " engine"
}

// HasNetwork reports whether a worker has one.
func HasNetwork(w *workshop.Worker) bool { return w.Container.Network.Mode.V != firewall.None }

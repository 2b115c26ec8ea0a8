package app

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/workshop"
)

// hintOnHost says what shows a worker with `image: host` a program that the caller's
// shell finds and the worker didn't; empty where nothing does. The names may be a
// worker's words: only programs of the caller's own PATH count.
func (env *Env) hintOnHost(s *Source, w *workshop.Worker, programs ...string) string {
	if w.Container.Image.V != workshop.HostImage || w.Container.Build != nil {
		return ""
	}
	m := env.toolchains(s.Root())
	for _, program := range programs {
		p, ok := m.Find(program)
		switch {
		case !ok:
			continue
		case p.Why != "":
			return fmt.Sprintf("this machine has %s, but workers can't have it: %s; install it below /usr, or name an image that has it", program, p.Why)
		case p.Dir == "":
			continue // it is there, and was found or not for another reason
		}
		var lines []string
		for _, source := range p.Mounts {
			lines = append(lines, "- "+toolchainMount(source, env.Home))
		}
		path := p.Dir + ":" + cmp.Or(w.Container.Env["PATH"].V, compose.HostPath)
		text := "`image: host` shows no " + program + ": this machine's is " + p.Found
		if len(lines) > 0 {
			text += "; to show it, add to mounts in " + env.Shown(s.Path) + ":\n" + strings.Join(lines, "\n") + "\nand"
		} else {
			text += ", which is not on the worker's PATH; add"
		}
		return text + " to its env:\nPATH: " + draft.Scalar(path) + "\nthen run `workshop up`"
	}
	return ""
}

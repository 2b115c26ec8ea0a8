package app

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// Hints that say what to write into a network name the keys where the file has one: what it
// has besides, such as a deny list, has to stay.

// networkHint says how to give workers a network, whatever the file has.
const networkHint = "to give workers one, write `mode: restricted` and `allow: [HOST]` below `network:` of the workshop's container in workshop.yaml, which a worker's own only narrows, and run `workshop up`"

// networkLine says what to write so that a worker without a network has one: it has no
// more than its workshop (B40).
func (s *Source) networkLine(w *workshop.Worker, file string) string {
	switch {
	case w.Import() != "":
		return "who keeps " + w.From + " writes `network: {mode: restricted, allow: [HOST]}` into its `needs`, and " + file + " grants it"
	case w.From != "":
		return "who keeps " + w.From + " gives it one"
	}
	switch s.Workshop.Container.Network.Mode.V {
	case firewall.None:
		return s.intoNetwork("", file) + "; a worker's own only narrows it"
	case firewall.Open:
		return s.intoNetwork(w.Name, file)
	}
	return s.intoNetwork(w.Name, file) + ", and HOST in the workshop's `allow`, too"
}

// intoNetwork says what to write so that a worker, or for "" the workshop, has a network.
func (s *Source) intoNetwork(worker, file string) string {
	whose, of := "the workshop's", "the workshop's container"
	if worker != "" {
		whose, of = worker+"'s", worker
	}
	if line, mode := edit.NetworkOf(s.text(), worker); line > 0 && mode == "" {
		return fmt.Sprintf("write `mode: restricted` and `allow: [HOST]` into %s network (line %d of %s)", whose, line, file)
	}
	return "write `network: {mode: restricted, allow: [HOST]}` for " + of + " in " + file
}

// withNetwork is what to write so that a worker has a list. The keys that its item has stay,
// too: without them it could have more.
func withNetwork(text []byte, worker, key string, list []string) string {
	lines := fmt.Sprintf("%s: [%s]", key, strings.Join(list, ", "))
	switch line, mode := edit.NetworkOf(text, worker); {
	case mode != "":
		return fmt.Sprintf("  in the container of %s (line %d): network: {mode: %s, %s}", worker, line, strconv.Quote(mode), lines)
	case line > 0:
		return fmt.Sprintf("  in the network of %s (line %d): %s", worker, line, lines)
	}
	item := fmt.Sprintf("- {name: %s, container: {network: {%s}}}", worker, lines)
	switch line, mapping := edit.ItemOf(text, worker); {
	case mapping:
		return fmt.Sprintf("  in the container of %s (line %d): network: {%s}", worker, line, lines)
	case line > 0:
		return fmt.Sprintf("%s  # in the place of line %d", item, line)
	}
	return item
}

// wholeList says what to write where a base has a list and the project none.
func (s *Source) wholeList(rules []firewall.Rule) string {
	lines := "allow: [" + strings.Join(ruleTexts(rules), ", ") + ", …]"
	where := "below `container:`, `network: {mode: restricted, " + lines + "}`"
	if line, mode := edit.NetworkOf(s.text(), ""); line > 0 && mode == "" {
		where = fmt.Sprintf("into network (line %d), `%s`", line, lines)
	}
	return "a list here takes the place of the base's: write it whole " + where + ", then run it with --save"
}

package workshop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// OnlyRoom is the name of a room that is its workshop's only one.
const OnlyRoom = "room"

// Room is a network namespace with loopback only, and the workers in it.
type Room struct {
	// Name is [OnlyRoom], or "room-WORKER" with the name of its first worker
	// where the workshop has several.
	Name    string
	Workers []string // in the order of the file
}

// Rooms groups the workers: those with the same effective network policy share
// a room, unless one asks for its own. Imported workers share one only with those of
// the same import: what others listen on isn't granted to them (B47). A worker with
// network mode none has no room: its container has a namespace of its own without any
// service. Rooms come in the order of their first workers.
func Rooms(w *Workshop) []Room {
	var rooms []Room
	byKey := map[string]int{}
	type from struct {
		as          string
		allow, deny *firewall.Rule
	}
	inherited := map[from]string{} // keys by lists: most workers have the workshop's
	for i := range w.Workers {
		n := w.Workers[i].Container.Network
		lists := from{w.Workers[i].Import(), firstRule(n.Allow), firstRule(n.Deny)}
		key, known := inherited[lists]
		if !known || n.Mode.V == firewall.None || w.Workers[i].Container.OwnRoom() || n.Mode.V != w.Container.Network.Mode.V {
			key = roomKey(&w.Workers[i])
			if n.Mode.V == w.Container.Network.Mode.V && !w.Workers[i].Container.OwnRoom() {
				inherited[lists] = key
			}
		}
		if key == "" {
			continue
		}
		at, ok := byKey[key]
		if !ok {
			at = len(rooms)
			byKey[key] = at
			rooms = append(rooms, Room{Name: OnlyRoom + "-" + w.Workers[i].Name})
		}
		rooms[at].Workers = append(rooms[at].Workers, w.Workers[i].Name)
	}
	if len(rooms) == 1 {
		rooms[0].Name = OnlyRoom
	}
	return rooms
}

// firstRule identifies a list: lists that were inherited share it.
func firstRule(rules []firewall.Rule) *firewall.Rule { return first(rules) }

func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// roomKey is equal for workers that may share a room, and empty for one that
// has none. Where a rule was written and which preset it comes from doesn't
// matter, nor the order of the rules.
func roomKey(wk *Worker) string {
	n := &wk.Container.Network
	switch {
	case n.Mode.V == firewall.None:
		return ""
	case wk.Container.OwnRoom():
		return "own " + wk.Name
	}
	return "of " + wk.Import() + "\n" + policyKey(n)
}

// policyKey is equal for networks that reach the same, and empty for one that reaches
// nothing.
func policyKey(n *Network) string {
	if n.Mode.V == firewall.None {
		return ""
	}
	return n.Mode.V.String() + "\nallow " + ruleSet(n.Allow) + "\ndeny " + ruleSet(n.Deny)
}

// Import is the name that the worker's file is imported by, behind those of the files that
// import each other: "sast", "sast--common". It is empty for workers of the workshop's
// own file and its bases.
func (w *Worker) Import() string {
	return w.Name[:max(0, strings.LastIndex(w.Name, importMark))]
}

// importMark stands between the name of an import and that of its worker.
const importMark = "--"

// ruleKey is equal for lines that say the same, wherever they are written.
func ruleKey(r firewall.Rule) string {
	key := fmt.Sprintf("%q %s %t %t %s", r.Target(), portsText(r.Ports), r.Private, r.ECH, r.Upload)
	if !r.Endpoint.IsZero() {
		key += " " + r.Endpoint.String()
	}
	return key
}

func ruleSet(rules []firewall.Rule) string {
	keys := make([]string, len(rules))
	for i, r := range rules {
		keys[i] = ruleKey(r)
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), ",")
}

// unusedSecrets warns of secrets that no worker names: each worker gets only
// those that its entry names.
func unusedSecrets(w *Workshop, entries []member, p *problems) {
	named := map[string]bool{}
	for _, e := range entries {
		if e.Container == nil || e.Container.Secrets == nil {
			continue
		}
		for _, s := range *e.Container.Secrets {
			named[s.Name] = true
		}
	}
	for _, s := range w.Container.Secrets {
		if !named[s.Name] && len(entries) > 0 {
			p.add(diag.Diagnostic{Severity: diag.Warning, Code: "secret-unused", Range: s.At.Range,
				Summary: fmt.Sprintf("no worker uses the secret %s", s.Name),
				Detail:  "A worker gets only the secrets that its entry names.",
				Hint:    fmt.Sprintf("name it where it is needed: `- {name: %s, container: {secrets: [%s]}}`", entries[0].Name.V, s.Name)})
		}
	}
}

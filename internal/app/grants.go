package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/workshop"
)

// A facet is one thing that a worker is granted. The key of a facet of which a worker
// can have several ends with what tells them apart: "mount /data", "tool shell".
type facet struct {
	name, label string
	hidden      bool // its text is not shown
}

// facets in the order in which changes are listed.
var facets = []facet{
	{name: "image", label: "image"},
	{name: "pull", label: "pull"},
	{name: "user", label: "user"},
	{name: "workdir", label: "workdir"},
	{name: "runtime", label: "runtime"},
	{name: "kernel", label: "kernel"},
	{name: "memory", label: "memory"},
	{name: "cpu", label: "cpu"},
	{name: "pids", label: "pids"},
	{name: "timeout", label: "timeout"},
	{name: "scratch", label: "scratch"},
	{name: "tmp", label: "tmp"},
	{name: "shm", label: "shm"},
	{name: "home", label: "home"},
	{name: "mount"},
	{name: "held", label: "read-only:"},
	{name: "secret", label: "secrets:"},
	{name: "cache", label: "caches:"},
	{name: "env", label: "env:", hidden: true},
	{name: "author", label: "git author"},
	{name: portFacet, label: "ports:"},
	{name: modeFacet, label: "network"},
	{name: "room", label: "room"},
	{name: "dns", label: "dns"},
	{name: "proxy", label: "proxy"},
	{name: lineFacet, label: "network:"},
	{name: "tool", label: "tools:"},
	{name: "delegate", label: "delegates to:"},
	{name: "model", label: "model"},
}

const (
	// lineFacet has the lines of allow and deny, which a reload applies too.
	lineFacet = "line"
	// portFacet has the published ports, which ps shows.
	portFacet = "port"
	// modeFacet has the mode of the network, which ls shows.
	modeFacet = "mode"
)

// grantOf is what a worker of a project with facts is granted.
func grantOf(ready *Project, w *workshop.Worker) facts.Grant {
	c := &w.Container
	g := facts.Grant{}
	for _, l := range grant.Worker(w, grant.Values) {
		key, text := facetOf(l.Surface), l.Text
		if l.Key != "" {
			key += " " + l.Key
		}
		switch l.Surface {
		case grant.Allow, grant.Deny, grant.Tool: // below, those of one preset or tool together
			continue
		case grant.Env:
			sum := sha256.Sum256([]byte(c.Env[l.Key].V)) // it may be a secret
			text = hex.EncodeToString(sum[:])
		}
		g[key] = text
	}
	for _, p := range c.Ports {
		g[portFacet+" "+strconv.Itoa(int(p.Target.V))] = grant.PortText(p, ready.Compiled.Published(compose.PortKey{Worker: w.Name, Target: p.Target.V}))
	}
	for _, target := range heldTargets(ready, w) {
		g["held "+target] = target
	}
	for _, r := range c.Network.Allow {
		text := grant.LineText(r, grant.Values)
		g[lineFacet+" allow "+text] = text
	}
	for _, r := range c.Network.Deny {
		text := "deny " + grant.LineText(r, grant.Values)
		g[lineFacet+" "+text] = text
	}
	toolGrants(g, w)
	return g
}

// toolGrants adds a worker's tools, each with all that it is limited to.
func toolGrants(g facts.Grant, w *workshop.Worker) {
	texts := map[string][]string{}
	for _, t := range w.Definition.Tools {
		texts[t.Name] = appendNew(texts[t.Name], grant.ToolText(t))
	}
	for name, list := range texts {
		g["tool "+name] = strings.Join(list, ", ")
	}
}

// facetOf is the facet that records have for a surface.
func facetOf(s grant.Surface) string {
	switch s {
	case grant.Mode:
		return modeFacet
	case grant.GitAuthor:
		return "author"
	}
	return string(s)
}

// heldTargets are the places inside the read-write mounts of a worker that are
// read-only (B8).
func heldTargets(ready *Project, w *workshop.Worker) (targets []string) {
	for _, v := range ready.Compiled.Project.Services[w.Name].Volumes {
		m := workshop.MountAt(w.Container.Mounts, v.Target)
		// A worker may have made a directory whose name speaks to the reader.
		if v.ReadOnly && m != nil && m.ReadWrite && m.Target.V != v.Target && shownPlace(v.Target) == v.Target {
			targets = append(targets, v.Target)
		}
	}
	return targets
}

// maxGrantChanges of one facet are named.
const maxGrantChanges = 3

// grantChanges says in words what differs between two grants, of the facets that are
// selected: "memory 2G → 1G", "+ ./docs at /docs ro". clipped: it doesn't name all.
func grantChanges(before, now facts.Grant, selected func(facet) bool) (out []string, clipped bool) {
	for _, f := range facets {
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(union(before, now))) {
			name, which, _ := strings.Cut(key, " ")
			was, is := before[key], now[key]
			if name != f.name || was == is || !selected(f) {
				continue
			}
			if f.hidden {
				was, is = hide(was, which), hide(is, which)
			}
			switch {
			case which == "":
				parts = append(parts, cmp.Or(was, "default")+" → "+cmp.Or(is, "default"))
			case was == "":
				parts = append(parts, "+ "+is)
			case is == "":
				parts = append(parts, "− "+was)
			case was == is:
				parts = append(parts, is+" changed")
			default:
				parts = append(parts, was+" → "+is)
			}
		}
		if n := len(parts) - maxGrantChanges; n > 0 {
			parts, clipped = append(parts[:maxGrantChanges], fmt.Sprintf("and %d more", n)), true
		}
		if len(parts) > 0 {
			out = append(out, Printable(strings.TrimPrefix(f.label+" "+strings.Join(parts, ", "), " ")))
		}
	}
	return out, clipped
}

func hide(text, name string) string {
	if text == "" {
		return ""
	}
	return name
}

func union(x, y facts.Grant) facts.Grant {
	out := maps.Clone(x)
	maps.Copy(out, y)
	return out
}

// GrantChanges has what differs of each worker's grant from that of its last `up`;
// workers of which nothing differs are left out.
type GrantChanges map[string]GrantChange

// GrantChange is what differs for one worker.
type GrantChange struct {
	// Text is all of it in words. Left is without the lines of the network: a reload
	// applies those, all else needs new containers.
	Text, Left string
	// Partial: Text doesn't name all that nobody was told by an `up`. Too much differs,
	// nothing is known of the grant before, or something else than an `up` changed it.
	Partial bool
}

// GrantChanges compares a project with facts with what its workers were granted.
func (env *Env) GrantChanges(ready *Project) GrantChanges {
	r, err := env.Record(ready.Name)
	if err != nil || r == nil || r.Down { // whoever needs the record says what is wrong with it
		r = &facts.Record{}
	}
	out := GrantChanges{}
	for i := range ready.Workshop.Workers {
		w := &ready.Workshop.Workers[i]
		before, ok := r.Granted[w.Name]
		if !ok {
			out[w.Name] = GrantChange{Partial: true}
			continue
		}
		now := grantOf(ready, w)
		all, clipped := grantChanges(before, now, func(facet) bool { return true })
		left, _ := grantChanges(before, now, func(f facet) bool { return f.name != lineFacet })
		c := GrantChange{strings.Join(all, "; "), strings.Join(left, "; "), clipped || slices.Contains(r.Unsaid, w.Name)}
		if c != (GrantChange{}) {
			out[w.Name] = c
		}
	}
	return out
}

// because adds what differs, in the words of text, to the cause of a step of a plan, or
// puts it in the place of one that says less.
func (c GrantChange) because(cause, text string) string {
	switch {
	case text == "":
		return cause
	case cause == "", cause == engine.ConfigurationChanged && c.Left != "":
		return text
	}
	return cause + "; " + text
}

// left are the lines of what a reload leaves.
func (all GrantChanges) left(lines []engine.Line) []string {
	return all.lines(lines, func(c GrantChange) string { return c.Left })
}

func (all GrantChanges) lines(lines []engine.Line, text func(GrantChange) string) (out []string) {
	for _, l := range lines {
		c := all[l.Object]
		l.Cause = c.because(l.Cause, text(c))
		out = append(out, Printable(l.String()))
	}
	return out
}

// PlanLines are what a plan changes: a line per image, room, guard and worker.
func (all GrantChanges) PlanLines(p *engine.Plan) []string {
	lines := p.Lines()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		only := p.Desired.Only
		if all[name].Text != "" && !slices.ContainsFunc(lines, func(l engine.Line) bool { return l.Object == name }) && (len(only) == 0 || slices.Contains(only, name)) {
			lines = append(lines, engine.Line{Verb: "update", Object: name})
		}
	}
	return all.lines(lines, func(c GrantChange) string { return c.Text })
}

// keepGrants records what the named workers, or all, are granted now. said: an `up` says
// it.
func (env *Env) keepGrants(ready *Project, names []string, said bool) {
	named := func(worker string) bool { return len(names) == 0 || slices.Contains(names, worker) }
	env.recordGrants(ready, func(worker string) bool { return said && named(worker) }, func(worker string, before, now facts.Grant) facts.Grant {
		if !named(worker) {
			return before
		}
		return now
	})
}

// keepLines records the lines of the network that a reload has applied.
func (env *Env) keepLines(ready *Project) {
	isLine := func(key, _ string) bool { return strings.HasPrefix(key, lineFacet+" ") }
	env.recordGrants(ready, func(string) bool { return false }, func(_ string, before, now facts.Grant) facts.Grant {
		if before == nil {
			return nil
		}
		before = maps.Clone(before)
		maps.DeleteFunc(before, isLine)
		maps.DeleteFunc(now, func(key, text string) bool { return !isLine(key, text) })
		return union(before, now)
	})
}

// recordGrants records grants, nil for none, and which of those that changed nobody was
// told. What is missing there is only said less precisely.
func (env *Env) recordGrants(ready *Project, said func(worker string) bool, grant func(worker string, before, now facts.Grant) facts.Grant) {
	r, err := env.Record(ready.Name)
	if err == nil && r != nil {
		granted := map[string]facts.Grant{}
		var unsaid []string
		for i := range ready.Workshop.Workers {
			w := &ready.Workshop.Workers[i]
			before := r.Granted[w.Name]
			g := grant(w.Name, before, grantOf(ready, w))
			if g != nil {
				granted[w.Name] = g
			}
			if !said(w.Name) && (slices.Contains(r.Unsaid, w.Name) || !maps.Equal(before, g)) {
				unsaid = append(unsaid, w.Name)
			}
		}
		r.Granted, r.Unsaid = granted, unsaid
		err = r.Save()
	}
	if err != nil {
		env.warn("the next `up` won't say what changed: %v", err)
	}
}
